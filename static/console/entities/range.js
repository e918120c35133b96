// Several cells together: Shift with arrows or a click extends from the cell with the focus; Ctrl+C copies them.
import { cellAt, enter, gridOf } from "../grid/grid.js";
import { copyRange } from "../grid/copy.js";
import { pickedKeys } from "../grid/selection.js";
import { tell } from "./results.js";

let anchor = null; // the cell where the range starts
let end = null; // the one where it ends

const isValue = (cell) => cell?.matches("td[data-property], td[data-system]") ?? false;

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

export function forget() {
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
  if (cell.isConnected) return cell;
  const row = document.querySelector(`[data-grid] tr[data-key="${CSS.escape(cell.parentElement.dataset.key)}"]`);
  return row?.cells[cell.cellIndex];
}

// rows that changed were replaced
document.addEventListener("grid:renewed", () => {
  if (!end) return;
  const [start, to] = [now(anchor), now(end)];
  forget();
  if (start && to && document.activeElement === to) mark(start, to);
});

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// before the grid, which moves, and leaves at Escape
document.addEventListener(
  "keydown",
  (event) => {
    const cell = cellAt(event);
    if (!isValue(cell) || event.altKey || event.isComposing) return;
    const isCommand = event.ctrlKey || event.metaKey;
    const step = event.shiftKey && !isCommand && STEPS[event.key];
    if (step) {
      event.preventDefault();
      const to = gridOf(cell).rows[cell.parentElement.rowIndex + step[0]]?.cells[cell.cellIndex + step[1]];
      if (isValue(to)) extend(cell, to);
    } else if (event.key === "Escape" && isRange(cell)) {
      event.preventDefault();
      event.stopPropagation();
      forget();
    } else if (isCommand && event.key.toLowerCase() === "c" && isRange(cell) && !pickedKeys().length) {
      event.preventDefault();
      const cells = cellsOf(cell);
      const names = cells[0].map(({ dataset }) => dataset.property ?? dataset.system);
      copyRange(cells.map(([first]) => first.parentElement.dataset.key), names);
    }
  },
  { capture: true },
);

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
