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

export function rowOf(key) {
  const row = document.querySelector(`[data-grid] tr[data-key="${CSS.escape(key ?? "")}"]`);
  if (row) drawRest(row);
  return row;
}

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

const CUT_AFTER = 40; // characters; as in console/grid/widths.py
// by table and column: pages of one table keep their columns where they are
const widest = new Map();

const headsOf = (grid) => [...grid.rows[0].cells].slice(1);
const widthsOf = (grid) => [...grid.querySelectorAll("col")].slice(1, -1).map((col) => Number(col.width));

/** Keep the widths of earlier pages; the last of the columns that are cut take what is free. Chosen widths stay. */
function widen(grid) {
  const heads = headsOf(grid);
  if (!heads[0]?.checkVisibility()) return; // it is a list
  const given = widthsOf(grid);
  const widths = given.map((width, at) => {
    const { property, width: chosen } = heads[at].dataset;
    if (chosen) return width;
    const name = `${grid.dataset.value} ${property}`;
    widest.set(name, Math.max(widest.get(name) ?? 0, width));
    return widest.get(name);
  });
  let free = grid.parentElement.clientWidth - widths.reduce((sum, width) => sum + width, Number(grid.querySelector("col").width));
  for (let at = heads.length - 1; at >= 0 && free > 0; at -= 1) {
    const more = Math.max(0, Math.min(free, (heads[at].dataset.fullWidth ?? 0) - widths[at]));
    widths[at] += more;
    free -= more;
  }
  if (widths.some((width, at) => width !== given[at])) setWidths(grid, widths);
}

/** Columns of exactly these widths. */
function setWidths(grid, widths) {
  const [handle, ...cols] = grid.querySelectorAll("col");
  widths.forEach((width, at) => (cols[at].width = width));
  grid.width = widths.reduce((sum, width) => sum + width, Number(handle.width));
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
  if (!grid || !headsOf(grid)[0]?.checkVisibility()) return;
  const widths = widthsOf(grid);
  headsOf(grid).forEach((head, at) => {
    const cell = row.cells[at + 1];
    const isShort = cell.textContent.length <= CUT_AFTER && !head.dataset.width;
    if (isShort && cell.scrollWidth > cell.clientWidth) widths[at] = needed(cell);
  });
  setWidths(grid, widths);
}

/** Where each pinned column stands: beside those before it, whose widths change. */
export function pin(grid) {
  const lefts = [];
  let left = Number(grid.querySelector("col")?.width ?? 0);
  const widths = widthsOf(grid);
  headsOf(grid).forEach((head, at) => {
    if (!head.classList.contains("pinned")) return;
    lefts.push([at + 1, `${left}px`]);
    left += widths[at];
  });
  // a rule or a property of the table would have browsers style, or even lay out, all cells again
  for (const { cells } of grid.rows) for (const [at, place] of lefts) if (cells[at] && cells[at].style.left !== place) cells[at].style.left = place;
}

/** Rows that are new on the page: what is inside of a cell is reached through the cell. */
export function prepare() {
  for (const control of document.querySelectorAll("[data-grid] :is(a, input, button)")) control.tabIndex = -1;
  for (const grid of document.querySelectorAll("[data-grid]")) {
    const cell = current(grid);
    if (cell) cell.tabIndex = 0;
    widen(grid);
    pin(grid);
  }
  drawSoon();
}

// the cells of a wide grid beyond its first columns: drawn when there is time, or at once if they are needed

const LATER = "[data-key] > script";
// their cells are laid out in a few milliseconds
const ROWS_AT_ONCE = 5;
const whenIdle = window.requestIdleCallback ?? ((run) => setTimeout(run, 50));

/** Draw all cells of a row, or of the rows of a page: of all, or the first ones. */
export function drawRest(root = document, most) {
  for (const text of [...root.querySelectorAll(LATER)].slice(0, most)) {
    const cells = [...new DOMParser().parseFromString(`<table><tr>${text.textContent}`, "text/html").querySelector("tr").cells];
    const heads = [...gridOf(text).rows[0].cells].slice(-cells.length);
    cells.forEach((cell, at) => {
      const { ariaColIndex, classList, dataset } = heads[at];
      cell.ariaColIndex = ariaColIndex;
      cell.classList.add(...classList);
      cell.dataset[dataset.system ? "system" : "property"] = dataset.property;
    });
    text.replaceWith(...cells);
  }
}

function drawSoon() {
  if (!document.querySelector(LATER)) return;
  whenIdle(() => {
    drawRest(document, ROWS_AT_ONCE);
    drawSoon();
  });
}

const isSearch = ({ key, ctrlKey, metaKey }) => key === "F3" || ((ctrlKey || metaKey) && key.toLowerCase() === "f");
addEventListener("keydown", (event) => (isSearch(event) || gridOf(event.target)) && drawRest(), { capture: true });
addEventListener("pointerdown", ({ target }) => gridOf(target) && drawRest(), { capture: true });
addEventListener("scroll", ({ target }) => target.matches?.(".grid-region") && target.scrollLeft && drawRest(), { capture: true, passive: true });
addEventListener("beforeprint", () => drawRest());

document.addEventListener("tablero:row", grow);
onSwap(prepare, ["tablero:row"]);
prepare();
matchMedia("(width < 640px)").addEventListener("change", prepare);
