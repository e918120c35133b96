// data-grid: one cell is in the tab order, and the keys of the ARIA grid pattern move it.
const PAGE = 10;

function rowsOf(grid) {
  return [...grid.rows];
}

function current(grid) {
  return grid.querySelector('[tabindex="0"]') ?? grid.rows[1]?.cells[0] ?? grid.rows[0]?.cells[0];
}

function enter(cell, grid) {
  const before = grid.querySelector('[tabindex="0"]');
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
  if (!cell.closest("thead")) {
    if (box.top < frame.top + head) region.scrollTop -= frame.top + head - box.top;
    if (box.bottom > frame.top + region.clientHeight) region.scrollTop += box.bottom - frame.top - region.clientHeight;
  }
  if (!cell.classList.contains("pinned")) {
    const pins = [...cell.parentElement.querySelectorAll(".pinned")];
    const left = frame.left + pins.reduce((sum, pin) => sum + pin.getBoundingClientRect().width, 0);
    if (box.left < left) region.scrollLeft -= left - box.left;
    else if (box.right > frame.left + region.clientWidth)
      region.scrollLeft += Math.min(box.right - frame.left - region.clientWidth, box.left - left);
  }
  region.scrollIntoView({ block: "nearest" });
}

function target(key, withControl, grid, cell) {
  const rows = rowsOf(grid);
  const row = rows.indexOf(cell.parentElement);
  const column = cell.cellIndex;
  const last = rows.length - 1;
  switch (key) {
    case "ArrowLeft": return rows[row].cells[column - 1];
    case "ArrowRight": return rows[row].cells[column + 1];
    case "ArrowUp": return rows[row - 1]?.cells[column];
    case "ArrowDown": return rows[row + 1]?.cells[column];
    case "Home": return withControl ? rows[Math.min(1, last)].cells[0] : rows[row].cells[0];
    case "End": return [...(withControl ? rows[last] : rows[row]).cells].at(-1);
    case "PageUp": return row > 1 ? rows[Math.max(1, row - PAGE)].cells[column] : turn("previous");
    case "PageDown": return row < last ? rows[Math.min(last, row + PAGE)].cells[column] : turn("next");
  }
}

function turn(which) {
  document.querySelector(`.pager [data-${which}]`)?.click();
}

const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

document.addEventListener("keydown", (event) => {
  const cell = event.target.closest?.("[data-grid] :is(td, th)");
  if (!cell || event.target !== cell) return;
  const grid = cell.closest("[data-grid]");
  if (event.key === "Escape") {
    grid.closest(".grid-region").focus();
  } else if (KEYS.has(event.key) && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    const next = target(event.key, event.ctrlKey || event.metaKey, grid, cell);
    if (next) enter(next, grid);
  } else if (event.key === "Enter" || event.key.toLowerCase() === "o") {
    cell.parentElement.querySelector("a")?.click();
  }
});

document.addEventListener("click", (event) => {
  const cell = event.target.closest("[data-grid] :is(td, th)");
  if (cell && !event.target.closest("a, button, input")) enter(cell, cell.closest("[data-grid]"));
});

/** The second pinned column stands beside the first, whose width only the browser knows. */
function pin(grid) {
  const [first] = grid.querySelectorAll("th.pinned");
  if (first) grid.style.setProperty("--second-pin", `${first.getBoundingClientRect().width}px`);
}

addEventListener("resize", () => document.querySelectorAll("[data-grid]").forEach(pin));

function prepare() {
  for (const grid of document.querySelectorAll("[data-grid]")) {
    const cell = current(grid);
    if (cell) cell.tabIndex = 0;
    pin(grid);
  }
}

document.addEventListener("htmx:after:swap", prepare);
prepare();
