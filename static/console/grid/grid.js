// data-grid: one cell is in the tab order, and the keys of the ARIA grid pattern move it.
import { bind } from "../site/commands.js";
import { onSwap } from "../site/on.js";

const PAGE = 10;

export function gridOf(element) {
  return element?.closest?.("[data-grid]") ?? null;
}

/** The cell with the focus, when the focus is on a cell itself and not on something inside of it. */
export function cellAt({ target }) {
  return target.matches?.("[data-grid] :is(td, th)") ? target : null;
}

export const rowOf = (key) => document.querySelector(`[data-grid] tr[data-key="${CSS.escape(key ?? "")}"]`);

export const cellOf = (key, property) => rowOf(key)?.querySelector(`td[data-property="${CSS.escape(property)}"]`);

/** The header of the column of a cell. */
export const headOf = (cell) => gridOf(cell).rows[0].cells[cell.cellIndex];

export function current(grid) {
  return grid.querySelector(':is(td, th)[tabindex="0"]') ?? grid.rows[1]?.cells[1] ?? grid.rows[0]?.cells[0];
}

export function propertyOf(cell) {
  return headOf(cell).dataset.property ?? "";
}

export function enter(cell, grid = gridOf(cell)) {
  const before = grid.querySelector(':is(td, th)[tabindex="0"]');
  if (before !== cell) before?.removeAttribute("tabindex");
  cell.tabIndex = 0;
  cell.focus({ preventScroll: true });
  reveal(cell);
}

/** Scroll the region, not the page, until no sticky header or column covers the cell. */
function reveal(cell) {
  const region = cell.closest(".grid-region");
  const box = cell.getBoundingClientRect();
  const frame = region.getBoundingClientRect();
  const head = cell.closest("table").rows[0].getBoundingClientRect().height;
  let { scrollTop: top, scrollLeft: left } = region;
  if (!cell.closest("thead")) {
    if (box.top < frame.top + head) top -= frame.top + head - box.top;
    else if (box.bottom > frame.top + region.clientHeight) top += box.bottom - frame.top - region.clientHeight;
  }
  if (!cell.matches(".pinned, .handle")) {
    const start = frame.left + pinnedWidth(cell);
    if (box.left < start) left -= start - box.left;
    else if (box.right > frame.left + region.clientWidth)
      left += Math.min(box.right - frame.left - region.clientWidth, box.left - start);
  }
  if (top !== region.scrollTop || left !== region.scrollLeft) region.scrollTo({ top, left, behavior: "instant" });
  const seen = region.getBoundingClientRect();
  if (seen.top < 0 || seen.bottom > innerHeight) cell.scrollIntoView({ block: "nearest" });
}

function pinnedWidth(cell) {
  const stuck = [...cell.parentElement.querySelectorAll(".handle, .pinned")].filter((it) => getComputedStyle(it).position === "sticky");
  return Math.max(0, ...stuck.map((it) => it.getBoundingClientRect().right)) - cell.closest(".grid-region").getBoundingClientRect().left;
}

function target(key, withControl, grid, cell) {
  const rows = grid.rows;
  const row = cell.parentElement.rowIndex;
  const column = cell.cellIndex;
  const last = rows.length - 1;
  switch (key) {
    case "ArrowLeft": return seen([...rows[row].cells].slice(0, column).reverse());
    case "ArrowRight": return seen([...rows[row].cells].slice(column + 1));
    case "ArrowUp": return rows[row - 1]?.cells[column];
    case "ArrowDown": return rows[row + 1]?.cells[column];
    case "Home": return withControl ? rows[Math.min(1, last)].cells[0] : rows[row].cells[0];
    case "End": return [...(withControl ? rows[last] : rows[row]).cells].at(-1);
    case "PageUp": return row > 1 ? rows[Math.max(1, row - PAGE)].cells[column] : turn("previous");
    case "PageDown": return row < last ? rows[Math.min(last, row + PAGE)].cells[column] : turn("next");
  }
}

/** The first of these cells that the list of a narrow screen shows. */
function seen(cells) {
  return cells.find((cell) => cell.checkVisibility());
}

function turn(which) {
  document.querySelector(`.pager [data-${which}]`)?.click();
}


function move(cell, event) {
  const grid = gridOf(cell);
  const next = target(event.key, event.ctrlKey || event.metaKey, grid, cell);
  if (next?.checkVisibility()) enter(next, grid);
}

function leave(cell) {
  cell.closest(".grid-region").focus();
  return false;
}

bind(cellAt, { "grid.move": move, "grid.row-ends": move, "grid.corners": move, "grid.pages": move, Escape: leave });

document.addEventListener("click", (event) => {
  const cell = event.target.closest("[data-grid] :is(td, th)");
  if (cell && !event.target.closest("a, button, input")) enter(cell);
});

// a property of the table would have browsers style all of its cells again
const places = new CSSStyleSheet();
document.adoptedStyleSheets.push(places);
let placed = "";

const CUT_AFTER = 40; // characters; as in grid.css
const widest = new Map(); // by table and column: pages of one table keep their columns where they are

/** Keep the widths that the browser gave the columns for their content; those that a person chose are in their heads. */
function measure(grid) {
  const heads = [...grid.rows[0].cells].slice(1);
  if ("fixed" in grid.dataset || !heads[0]?.checkVisibility()) return; // or it is a list
  const measured = heads.map((head) => Math.ceil(head.getBoundingClientRect().width) + 1);
  const widths = heads.map((head, at) => {
    const name = `${grid.dataset.value} ${head.dataset.property}`;
    if (!head.dataset.width) widest.set(name, Math.max(widest.get(name) ?? 0, measured[at]));
    return Number(head.dataset.width ?? widest.get(name));
  });
  setWidths(grid, widths);
  // the last of the columns that are cut take what is free
  let free = grid.parentElement.clientWidth - grid.width;
  for (let at = heads.length - 1; at >= 0 && free > 0; at -= 1) {
    if (heads[at].dataset.width) continue;
    const more = Math.max(0, Math.min(free, neededWidth(grid, at + 1) - widths[at]));
    widths[at] += more;
    free -= more;
  }
  setWidths(grid, widths);
}

/** Columns of exactly these widths. */
function setWidths(grid, widths) {
  const [handle, ...cols] = grid.querySelectorAll("col");
  widths.forEach((width, at) => (cols[at].width = width));
  grid.width = widths.reduce((sum, width) => sum + width, Number(handle.width));
  grid.dataset.fixed = "";
}

/** The width that the content of a column takes, from its position among all. */
export function neededWidth(grid, at) {
  return Math.max(...[...grid.rows].map((row) => needed(row.cells[at])));
}

function needed(cell) {
  const content = document.createRange();
  content.selectNodeContents(cell);
  const cut = cell.querySelector(".cut > bdi");
  const { paddingInlineStart: start, paddingInlineEnd: end } = getComputedStyle(cell);
  const hidden = cut ? cut.scrollWidth - cut.clientWidth : 0;
  return Math.ceil(content.getBoundingClientRect().width + hidden + parseFloat(start) + parseFloat(end)) + 1;
}

/** A value that was saved is whole again, unless it is long. */
function grow({ detail: row }) {
  const grid = gridOf(row);
  const heads = [...(grid?.rows[0].cells ?? [])];
  if (!grid || !("fixed" in grid.dataset)) return;
  const widths = [...grid.querySelectorAll("col")].slice(1, heads.length).map((col) => Number(col.width));
  widths.forEach((width, at) => {
    const cell = row.cells[at + 1];
    const isShort = cell.textContent.length <= CUT_AFTER && !heads[at + 1].dataset.width;
    if (isShort && cell.scrollWidth > cell.clientWidth) widths[at] = needed(cell);
  });
  setWidths(grid, widths);
}

/** Measure again: the font of data has come, or a list has become a grid. */
export function remeasure() {
  widest.clear();
  for (const grid of document.querySelectorAll("[data-grid][data-fixed]")) {
    const heads = [...grid.rows[0].cells];
    delete grid.dataset.fixed;
    grid.removeAttribute("width");
    [...grid.querySelectorAll("col")].slice(1, heads.length).forEach((col, at) => heads[at + 1].dataset.width || col.removeAttribute("width"));
  }
  prepare();
}

/** Where each pinned column stands: beside those before it, whose widths change. */
export function pin(grid) {
  const [handle, ...columns] = grid.querySelectorAll("col");
  let left = Number(handle?.width ?? 0);
  let rules = "";
  [...grid.rows[0].cells].slice(1).forEach((head, at) => {
    if (!head.classList.contains("pinned")) return;
    rules += `.grid .p${at + 1} { left: ${left}px; }`;
    left += Number(columns[at].width);
  });
  if (rules !== placed) places.replaceSync(`@layer components { ${(placed = rules)} }`);
}

/** Rows that are new on the page: what is inside of a cell is reached through the cell. */
export function prepare(root = document) {
  for (const control of root.querySelectorAll("[data-grid] :is(a, input, button)")) control.tabIndex = -1;
  for (const grid of root.querySelectorAll("[data-grid]")) {
    const cell = current(grid);
    if (cell) cell.tabIndex = 0;
    measure(grid);
    pin(grid);
  }
}

document.addEventListener("tablero:row", grow);
onSwap(() => prepare(), ["tablero:row"]);
prepare();
document.fonts.addEventListener("loadingdone", remeasure);
matchMedia("(width < 640px)").addEventListener("change", () => prepare());
