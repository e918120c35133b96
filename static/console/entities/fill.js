// Changes of one or several cells without the editor: Space toggles, Delete clears, Ctrl+D fills down, a paste fills.
import { bind } from "../site/commands.js";
import { announce, explain, post } from "../site/request.js";
import { cellAt, cellOf, gridOf, headOf } from "../grid/grid.js";
import { cellsOf, isRange } from "./range.js";
import { keep } from "./staged.js";
import { notify } from "../site/toast.js";

function changeable(event) {
  const cell = cellAt(event);
  return cell?.matches("[data-grid][data-cells] td[data-property]") ? cell : null;
}

/** The rectangle as the server needs it; null if there are keys in it, or the Timestamp. */
function describe(cells) {
  if (cells[0].some((cell) => !cell.dataset.property)) return null;
  const rows = cells.map(([first]) => [first.parentElement.dataset.key, first.parentElement.dataset.etag]);
  return JSON.stringify({ rows, columns: cells[0].map((cell) => [cell.dataset.property, headOf(cell).dataset.type ?? ""]) });
}

async function change(cells, action, text = "") {
  const { dataset } = gridOf(cells[0][0]);
  const described = describe(cells);
  if (!described) return notify(dataset.keysStay);
  const body = new FormData();
  const csrf = document.querySelector('#selection [name="csrfmiddlewaretoken"]').value;
  for (const [name, value] of Object.entries({ csrfmiddlewaretoken: csrf, cells: described, action, text })) body.set(name, value);
  if (dataset.editMode === "staged") body.set("stage", "1");
  const keys = cells.map(([first]) => first.parentElement.dataset.key);
  document.dispatchEvent(new CustomEvent("grid:changing", { detail: { keys } }));
  const { status, found } = await post(dataset.cells, body);
  announce(found);
  for (const template of found.querySelectorAll("template[data-change]")) {
    const { key, property } = template.dataset;
    const cell = cellOf(key, property);
    if (cell) keep(cell, template);
  }
  if (![200, 412, 422].includes(status)) return notify(explain(found, status));
  if (status !== 422) document.dispatchEvent(new CustomEvent("grid:changed", { detail: { keys: [] } }));
}

function clear(cell) {
  const cells = cellsOf(cell);
  if (cells.flat().some((it) => it.dataset.state !== "absent")) change(cells, "clear");
}

function booleanCell(event) {
  const cell = changeable(event);
  const isBoolean = cell && (cell.dataset.type ?? headOf(cell).dataset.type) === "Edm.Boolean";
  return isBoolean && cell.dataset.state !== "absent" && cell;
}

function toggle(cell) {
  const text = cell.dataset.pending ?? cell.lastChild.textContent;
  change([[cell]], "paste", text.trim() === "true" ? "false" : "true");
}

bind(changeable, { "cells.fill": fillDown, "cells.clear": clear });
bind(booleanCell, { "cell.toggle": toggle }, 2); // before the selection of rows, whose key it is elsewhere

/** The first row of the range in the others; a cell alone takes the value above it. */
function fillDown(cell) {
  if (isRange(cell)) {
    const cells = cellsOf(cell);
    if (cells.length > 1) change(cells, "fill");
    return;
  }
  const above = cell.parentElement.previousElementSibling?.cells[cell.cellIndex];
  if (above) change([[above], [cell]], "fill");
}

// rows with their keys are for paste.js, one value for the editor
document.addEventListener(
  "paste",
  (event) => {
    const cell = document.activeElement?.matches("td") ? changeable({ target: document.activeElement }) : null;
    const text = event.clipboardData?.getData("text/plain").replace(/\r?\n$/, "") ?? "";
    if (!cell || !text || isRows(text)) return;
    const isSeveral = /[\t\n]/.test(text);
    if (!isSeveral && !isRange(cell)) return;
    event.preventDefault();
    event.stopPropagation();
    const cells = cellsOf(cell);
    change(isSeveral ? from(cells[0][0]) : cells, "paste", text);
  },
  { capture: true },
);

function isRows(text) {
  return /^\s*[[{]/.test(text) || (/\bPartitionKey\b/.test(text.split("\n", 1)[0]) && /\bRowKey\b/.test(text.split("\n", 1)[0]));
}

/** All cells below and beside a cell, as far as they can be changed. */
function from(cell) {
  const rows = [...gridOf(cell).rows].slice(cell.parentElement.rowIndex);
  return rows.map((row) => {
    const cells = [...row.cells].slice(cell.cellIndex);
    const last = cells.findIndex((it) => !it.dataset.property);
    return last < 0 ? cells : cells.slice(0, last);
  });
}
