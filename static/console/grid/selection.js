// Selection of rows: on this page, on pages before and after it, or all that the query finds.
import { bind } from "../site/commands.js";
import { on, onPage, onSwap } from "../site/on.js";
import { get } from "../site/request.js";
import { notify } from "../site/toast.js";
import { cellAt, current, enter, gridOf, rowOf } from "./grid.js";

const picked = new Set(); // keys
let everything = null; // the number of all results when they are what is selected, as text
let anchor = null; // the key of the row where a range starts
let query;

const grid = () => document.querySelector("#results [data-grid]");
const form = () => document.querySelector("#selection.selection-bar");
const rows = () => [...(grid()?.tBodies[0].rows ?? [])];
const boxOf = (row) => row.querySelector('[name="key"]');

export function pickedKeys() {
  return [...picked];
}

export function isEverything() {
  return everything !== null;
}

/** Whether no row is ticked. */
export function isNone() {
  return !picked.size && everything === null;
}

/** The rows that something is done with: the ticked ones, or else the one with the focus. */
export function keysFor(cell) {
  return isNone() ? [row(cell).dataset.key] : pickedKeys();
}

function pick(row, on) {
  if (!row?.dataset.key) return;
  if (on) picked.add(row.dataset.key);
  else picked.delete(row.dataset.key);
}

export function clear() {
  picked.clear();
  everything = null;
  draw();
}

/** Everything on the page shows what is selected. */
function draw() {
  const all = rows();
  for (const row of all) {
    const on = everything !== null || picked.has(row.dataset.key);
    const box = boxOf(row);
    if (box && box.checked !== on) box.checked = on;
    if ((row.ariaSelected === "true") !== on) row.ariaSelected = String(on);
  }
  const here = all.filter((row) => row.ariaSelected === "true").length;
  const page = grid()?.querySelector("[data-select-page]");
  if (page) {
    page.checked = here > 0 && here === all.length;
    page.indeterminate = here > 0 && here < all.length;
  }
  bar(here > 0 && here === all.length);
}

function bar(isPage) {
  const it = form();
  if (!it) return;
  const count = everything === null ? picked.size : -1;
  it.toggleAttribute("data-picked", count !== 0);
  it.elements.scope.value = count < 0 ? "query" : "rows";
  if (!count) return; // it is not shown
  const told = it.querySelector("[data-picked-count]");
  const text = told.dataset.text.replace("{}", count < 0 ? everything : count.toLocaleString(document.documentElement.lang));
  if (told.textContent !== text) told.textContent = text;
  it.querySelector("[data-select-all]").hidden = !isPage || count < 0 || !document.querySelector(".pager :is([data-next], [data-previous], #page-first)");
  for (const button of it.querySelectorAll("[data-needs]")) button.hidden = Number(button.dataset.needs) !== count;
  for (const button of it.querySelectorAll("[data-rows-only]")) button.hidden = count < 0;
}

function range(to, on = true) {
  const all = rows();
  const [start, end] = [all.findIndex((row) => row.dataset.key === anchor), all.indexOf(to)].sort((a, b) => a - b);
  if (start < 0) return pick(to, on);
  for (const row of all.slice(start, end + 1)) pick(row, on);
}

function toggle(row) {
  everything = null;
  pick(row, !picked.has(row.dataset.key));
  anchor = row.dataset.key;
  draw();
}

function selectPage(on = true) {
  everything = null;
  for (const row of rows()) pick(row, on);
  draw();
}

/** All results at once, whatever is done next; an estimate of their number is shown until they are counted. */
async function selectAll() {
  const { number, exact } = document.getElementById("total")?.dataset ?? {};
  const write = (found) => Number(found).toLocaleString(document.documentElement.lang);
  everything = (exact === undefined ? "~" : "") + (number ? write(number) : "…");
  draw();
  if (exact !== undefined) return;
  const told = form().querySelector("[data-picked-count]");
  told.setAttribute("aria-busy", "true");
  const answer = await get(form().dataset.countAddress).catch(() => null);
  told.removeAttribute("aria-busy");
  const found = answer?.found.getElementById("total");
  if (!found || everything === null || !told.isConnected) return; // or of another query
  document.getElementById("total")?.replaceWith(document.adoptNode(found));
  if (found.dataset.number) everything = write(found.dataset.number);
  draw();
}

document.addEventListener("click", (event) => {
  const box = event.target.closest?.("[data-grid] input[type=checkbox]");
  if (box?.matches("[data-select-page]")) return selectPage(box.checked);
  if (box) {
    const row = box.closest("tr");
    everything = null;
    if (event.shiftKey && anchor) range(row, box.checked);
    else pick(row, box.checked);
    anchor = row.dataset.key;
    return draw();
  }
  const cell = event.target.closest?.("[data-grid] td");
  if (cell?.matches(".handle") && event.shiftKey && !event.target.closest("a")) {
    getSelection()?.removeAllRanges();
    anchor ??= current(gridOf(cell))?.parentElement.dataset.key;
    range(cell.parentElement);
    draw();
  } else if (cell && (event.ctrlKey || event.metaKey) && !event.target.closest("a")) toggle(cell.parentElement);
  else if (cell) anchor = cell.parentElement.dataset.key;
  if (event.target.closest?.("[data-clear]")) clear();
  if (event.target.closest?.("[data-select-all]")) selectAll();
});

// a range of rows is no range of text
document.addEventListener("mousedown", (event) => {
  if (event.shiftKey && event.target.closest?.("[data-grid] td")) event.preventDefault();
});

// before the grid itself: Esc first clears the selection

const isPage = () => rows().every((it) => picked.has(it.dataset.key));
const row = (cell) => cell.parentElement;

function tick(cell, { shiftKey }) {
  if (cell.closest("thead")) selectPage(!isPage());
  else if (shiftKey && anchor) {
    range(row(cell));
    draw();
  } else toggle(row(cell));
}

function step(cell, { key }) {
  if (!cell.matches(".handle")) return false;
  extend(cell, key === "ArrowDown" ? row(cell).nextElementSibling : row(cell).previousElementSibling);
}

function selectMore() {
  if (isPage() && everything === null) selectAll();
  else selectPage();
}

const remove = (cell) => row(cell).dataset.key !== undefined && send("[data-delete]", cell);

/** The first cell of a row, or its box, which a click focuses. */
function handleAt({ target }) {
  return target.closest?.("[data-grid][data-cell] tbody .handle");
}

/** Keys stay; what does delete rows is said. */
function keyCellAt(event) {
  const cell = cellAt(event);
  return cell?.matches("[data-grid][data-cells] [data-system]") && cell;
}

const sayHow = (cell) => notify(gridOf(cell).dataset.howToDelete);

bind(
  cellAt,
  {
    "row.select": tick,
    "Shift+ArrowUp Shift+ArrowDown": step,
    "page.select": selectMore,
    "row.delete": remove,
    "row.open": (cell) => "key" in row(cell).dataset && row(cell).querySelector("a.open").click(),
    "row.duplicate": (cell) => "key" in row(cell).dataset && duplicate(keysFor(cell)[0]),
  },
  1,
);

bind(handleAt, { "rows.delete": (handle) => (isNone() ? sayHow(handle) : remove(handle)) }, 1);
bind(keyCellAt, { "Delete Backspace": sayHow });

const cellBesideTicks = (event) => !isNone() && cellAt(event);
bind(cellBesideTicks, { Escape: () => clear() }, 1);

function extend(cell, next) {
  if (!next?.dataset.key) return;
  const from = row(cell);
  if (!picked.has(from.dataset.key)) {
    anchor = from.dataset.key;
    pick(from, true);
  }
  const all = rows();
  const start = all.findIndex((it) => it.dataset.key === anchor);
  const shrinks = Math.abs(all.indexOf(next) - start) < Math.abs(all.indexOf(from) - start);
  if (shrinks) pick(from, false);
  else pick(next, true);
  everything = null;
  enter(next.cells[cell.cellIndex]);
  draw();
}

/** Press a button of the selection; with nothing ticked, for the row of the cell. False: it is not offered. */
export function send(selector, cell) {
  const button = form()?.querySelector(selector);
  if (!button) return false;
  if (isNone()) {
    pick(cell.parentElement, true);
    draw();
  }
  if (button.hidden) return false;
  button.click();
  return true;
}

/** A copy to be, in the drawer. */
export function duplicate(key) {
  const address = form()?.dataset.new;
  if (address && key) document.dispatchEvent(new CustomEvent("entity:open", { detail: `${address}?${new URLSearchParams({ from: key })}` }));
}

on("click", "#selection [data-action]", ({ dataset: { action } }) => {
  const [key] = picked;
  if (action === "duplicate") duplicate(key);
  if (action === "open") rowOf(key)?.querySelector("a.open")?.click();
});

/** Rows of other pages have no box here, but they are sent too. */
function complete(data) {
  const sent = new Set(data.getAll("key"));
  if (everything === null) for (const key of picked) if (!sent.has(key)) data.append("key", key);
  if (everything !== null) data.delete("key");
  return data;
}

document.addEventListener("formdata", (event) => {
  if (event.target.id === "selection") complete(event.formData);
});

function renew() {
  const results = document.getElementById("results");
  // another query, another selection; the rows of another page stay selected
  if (results && results.dataset.filter !== query) {
    query = results.dataset.filter;
    picked.clear();
    everything = null;
  }
  draw();
}

onSwap(renew, ["tablero:row", "grid:renewed"]);
onPage(() => {
  picked.clear();
  everything = anchor = null;
  query = document.getElementById("results")?.dataset.filter;
  for (const row of rows()) if (boxOf(row)?.checked) pick(row, true); // a browser that goes back may have kept the ticks
  draw();
});
