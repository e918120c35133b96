// Several cells together: Shift with arrows or a click extends from the cell with the focus; Ctrl+C copies them.
import { bind } from "../site/commands.js";
import { onPage } from "../site/on.js";
import { enter, gridOf, rowOf } from "../grid/grid.js";
import { copyRange } from "../grid/copy.js";
import { isNone, pickedKeys } from "../grid/selection.js";
import { tell } from "./results.js";

let anchor = null; // the cell where the range starts
let end = null; // the one where it ends

const isValue = (cell) => cell?.matches?.("td[data-property], td[data-system]") ?? false;

/** The cells of the range by row; without one, the cell itself. */
export function cellsOf(cell) {
  if (!anchor?.isConnected || end !== cell) return [[cell]];
  const rows = gridOf(cell).rows;
  const [top, bottom] = order(anchor.parentElement.rowIndex, end.parentElement.rowIndex);
  const [left, right] = order(anchor.cellIndex, end.cellIndex);
  return [...rows].slice(top, bottom + 1).map((row) => [...row.cells].slice(left, right + 1));
}

export function isRange(cell) {
  return anchor !== null && anchor.isConnected && end === cell && anchor !== end;
}

function order(one, other) {
  return one < other ? [one, other] : [other, one];
}

function forget() {
  for (const cell of document.querySelectorAll("[data-range]")) {
    delete cell.dataset.range;
    cell.removeAttribute("aria-selected");
  }
  anchor = end = null;
}

function extend(from, to) {
  const start = isRange(from) ? anchor : from;
  forget();
  enter(to);
  if (start === to) return;
  mark(start, to);
  tell(document.getElementById("cell-menu").dataset.selected.replace("{}", cellsOf(to).flat().length));
}

function mark(start, to) {
  [anchor, end] = [start, to];
  for (const cell of cellsOf(to).flat()) {
    cell.dataset.range = "";
    cell.ariaSelected = "true";
  }
}

/** The cell that took the place of one whose row was replaced. */
function now(cell) {
  return cell.isConnected ? cell : rowOf(cell.parentElement.dataset.key)?.cells[cell.cellIndex];
}

// rows that changed were replaced
document.addEventListener("grid:renewed", () => {
  if (!end) return;
  const [start, to] = [now(anchor), now(end)];
  forget();
  if (start && to && document.activeElement === to) mark(start, to);
});

onPage(forget);

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function valueCell({ target }) {
  return isValue(target) && target.matches("[data-grid] td") && target;
}

function step(cell, { key }) {
  const [down, right] = STEPS[key];
  const to = gridOf(cell).rows[cell.parentElement.rowIndex + down]?.cells[cell.cellIndex + right];
  if (isValue(to)) extend(cell, to);
}

function copy(cell) {
  if (!isRange(cell) || pickedKeys().length) return false;
  const cells = cellsOf(cell);
  const names = cells[0].map(({ dataset }) => dataset.property ?? dataset.system);
  copyRange(cells.map(([first]) => first.parentElement.dataset.key), names);
}

/** Ticked rows are forgotten by the same key. */
function giveUp(cell) {
  if (!isRange(cell)) return false;
  forget();
  return isNone() ? undefined : false;
}

// before the grid, which moves, and leaves at Escape
bind(valueCell, { "cells.extend": step, "cells.copy": copy, Escape: giveUp }, 2);

document.addEventListener("focusin", (event) => {
  const cell = event.target.closest?.("[data-grid] :is(td, th)");
  if (cell && end && cell !== now(end)) forget();
});

// before the grid, which makes the clicked cell the only one
document.addEventListener(
  "click",
  (event) => {
    const cell = event.target.closest?.("[data-grid] td");
    const from = document.activeElement;
    if (!event.shiftKey || !isValue(cell) || !isValue(from) || gridOf(from) !== gridOf(cell)) return;
    event.preventDefault();
    event.stopPropagation();
    extend(from, cell);
  },
  { capture: true },
);
