// Copies whole values: what a cell shows is only the beginning of them, so they are fetched.
import { put as putText } from "../site/copy.js";
import { bind } from "../site/commands.js";
import { on } from "../site/on.js";
import { json } from "../site/request.js";
import { cellAt, propertyOf } from "./grid.js";
import { isEverything, keysFor, pickedKeys } from "./selection.js";
import { notify } from "../site/toast.js";

function shownColumns() {
  return [...document.querySelectorAll("#results th[data-property]")].map((head) => head.dataset.property);
}

async function fetched(fields) {
  const form = document.getElementById("selection");
  const body = new FormData(form);
  for (const name of ["key", "column", "as"]) body.delete(name);
  if (fields.some(([name]) => name === "scope")) body.delete("scope");
  for (const [name, value] of fields) body.append(name, value);
  return json(form.dataset.copyAddress, { method: "POST", body });
}

/** The permission to write ends with the click, so the clipboard gets a promise. */
async function put(found) {
  const part = (type, of) => found.then((it) => new Blob([of(it)], { type }));
  if (navigator.clipboard && window.ClipboardItem) {
    const parts = { "text/plain": part("text/plain", (it) => it.text), "text/html": part("text/html", (it) => it.html ?? pre(it.text)) };
    return navigator.clipboard.write([new ClipboardItem(parts)]);
  }
  return putText((await found).text);
}

function pre(text) {
  const frame = document.createElement("pre");
  frame.textContent = text;
  return frame.outerHTML;
}

async function copy(fields) {
  const found = fetched(fields);
  try {
    await put(found);
    notify(document.getElementById("toasts").dataset.copied);
  } catch (error) {
    const reason = await found.then(() => error, (failure) => failure);
    notify(reason.message);
  }
}

/** In a form: tsv, json, ndjson, csv, markdown, python, javascript, address. */
export function copyRows(as, keys) {
  const fields = [["as", as], ["head", "1"], ...shownColumns().map((name) => ["column", name])];
  return copy([...fields, ...(isEverything() ? [] : keys.map((key) => ["key", key]))]);
}

/** The values of some columns, in the order of the rows here. */
export function copyRange(keys, names) {
  const fields = [["as", "tsv"], ["scope", "rows"], ["order", "given"]];
  copy([...fields, ...names.map((name) => ["column", name]), ...keys.map((key) => ["key", key])]);
}

export function copyCell(cell) {
  const row = cell.parentElement;
  if (cell.closest("thead")) return copyText(propertyOf(cell));
  copy([["as", "tsv"], ["column", propertyOf(cell) || "PartitionKey"], ["scope", "rows"], ["key", row.dataset.key]].filter(([name]) => name));
}

function copyText(text) {
  return put(Promise.resolve({ text })).then(() => notify(document.getElementById("toasts").dataset.copied));
}

bind(cellAt, {
  "cells.copy": (cell) => {
    if (getSelection()?.isCollapsed === false) return false;
    if (pickedKeys().length || isEverything()) copyRows("tsv", pickedKeys());
    else copyCell(cell);
  },
  "rows.copy-json": (cell) => cell.parentElement.dataset.key !== undefined && void copyRows("json", keysFor(cell)),
});

on("click", "[data-copy-as]", (button) => {
  button.closest("[popover]")?.hidePopover();
  copyRows(button.dataset.copyAs, pickedKeys());
});
on("click", "[data-copy-document]", ({ dataset }) => copy([["as", "json"], ["key", dataset.copyDocument]]));
