// Menus of a header and of a cell, the buttons of the row that is pointed at, and what a cell says when it has the focus.
import { cellAt, enter, gridOf, propertyOf } from "../grid/grid.js";
import { fit, hide, move, resize, setPinned } from "../grid/columns.js";
import { copyCell, copyRows } from "../grid/copy.js";
import { duplicate, pickedKeys, send } from "../grid/selection.js";
import { view } from "./viewer.js";
import { offer, sortField } from "../queries/cells.js";

const KEYS = ["PartitionKey", "RowKey"];
let owner = null; // the cell that a menu is about

function open(menu, cell, point) {
  owner = cell;
  const box = cell.getBoundingClientRect();
  divide(menu);
  menu.showPopover();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = point ? point.clientX : box.left;
  const top = point ? point.clientY : box.bottom + 2;
  menu.style.setProperty("left", `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`);
  menu.style.setProperty("top", `${Math.max(8, top + height > innerHeight - 8 ? Math.max(8, box.top - height - 2) : top)}px`);
  menu.querySelector("button:not([hidden])")?.focus();
}

/** A divider stands between two groups that are shown. */
function divide(menu) {
  let isGroup = false;
  for (const item of menu.children) {
    if (item.matches("hr")) {
      item.hidden = !isGroup;
      isGroup = false;
    } else isGroup ||= !item.hidden;
  }
}

function openColumn(head) {
  const menu = document.getElementById("column-menu");
  const name = head.dataset.property;
  const isPinned = head.classList.contains("pinned");
  menu.querySelector("[data-title]").textContent = name;
  menu.querySelector('[data-column-action="pin"]').hidden = isPinned;
  menu.querySelector('[data-column-action="unpin"]').hidden = !isPinned;
  menu.querySelector('[data-column-action="sort-none"]').hidden = !sortField()?.value;
  menu.querySelector('[data-column-action="hide"]').hidden = KEYS.includes(name);
  menu.querySelector("[name=width]").value = Math.round(head.getBoundingClientRect().width);
  enter(head);
  open(menu, head);
}

function openCell(cell, point) {
  enter(cell);
  const menu = document.getElementById("cell-menu");
  const isProperty = Boolean(cell.dataset.property);
  menu.querySelector('[data-cell-action="edit"]')?.toggleAttribute("hidden", !isProperty);
  menu.querySelector('[data-cell-action="view"]').hidden = !isProperty && !cell.dataset.system;
  offer(menu, cell);
  menu.setAttribute("aria-label", [propertyOf(cell), cell.textContent.trim()].filter(Boolean).join(": ") || menu.dataset.name);
  open(menu, cell, point);
}

function shut(menu) {
  menu.hidePopover();
  if (owner?.isConnected) owner.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const head = event.target.closest?.("[data-grid] th[data-property]");
  if (head && document.getElementById("column-menu")) return openColumn(head);
  const action = event.target.closest?.("[data-column-action]")?.dataset.columnAction;
  if (action) {
    const name = owner.dataset.property;
    shut(document.getElementById("column-menu"));
    ({ left: () => move(name, -1), right: () => move(name, 1), pin: () => setPinned(name, true), unpin: () => setPinned(name, false), hide: () => hide(name), fit: () => fit(name), "sort-up": () => sort(name), "sort-down": () => sort(`-${name}`), "sort-none": () => sort("") })[action]();
  }
  const cellAction = event.target.closest?.("[data-cell-action]")?.dataset.cellAction;
  if (cellAction) {
    const cell = owner;
    shut(document.getElementById("cell-menu"));
    act(cellAction, cell);
  }
  const rowAction = event.target.closest?.("[data-row-action]")?.dataset.rowAction;
  if (rowAction && pointed) act(rowAction, pointed.cells[1]);
});

function sort(by) {
  document.dispatchEvent(new CustomEvent("tablero:sort", { detail: by }));
}

function act(action, cell) {
  const { key } = cell.parentElement.dataset;
  if (action.startsWith("filter-")) return document.dispatchEvent(new CustomEvent("tablero:filter", { detail: { cell, how: action.slice(7) } }));
  switch (action) {
    case "open": return cell.parentElement.querySelector("a.open").click();
    case "edit": return cell.dispatchEvent(new MouseEvent("dblclick", { bubbles: true, cancelable: true }));
    case "view": return view(cell);
    case "copy": return copyCell(cell);
    case "copy-json": return copyRows("json", [key]);
    case "copy-address": return copyRows("address", [key]);
    case "duplicate": return duplicate(key);
    // the ticked rows if this is one of them, else this one alone
    case "delete":
      if (pickedKeys().includes(key)) return send("[data-delete]", cell);
      return document.dispatchEvent(new CustomEvent("tablero:delete", { detail: key }));
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest?.("[data-column-width]");
  if (!form) return;
  event.preventDefault();
  const name = owner.dataset.property;
  shut(form.closest("[popover]"));
  const width = Number(form.elements.width.value);
  if (width) resize(name, width, 0);
});

document.addEventListener("contextmenu", async (event) => {
  const cell = event.target.closest?.("[data-grid] :is(td, th[data-property])");
  if (!cell || event.shiftKey || cell.closest("[data-editing]") || !document.getElementById("cell-menu")) return;
  event.preventDefault();
  const isByKey = event.button !== 2;
  if (event.buttons) await release();
  if (cell.matches("th")) openColumn(cell);
  else if (cell.parentElement.dataset.key) openCell(cell, isByKey ? null : event);
});

/** Where the event comes while the button is down, its release would dismiss a menu that is open by then. */
function release() {
  return new Promise((done) => document.addEventListener("pointerup", () => setTimeout(done), { once: true }));
}

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.(".grid-menu");
  if (menu) return walk(menu, event);
  const cell = cellAt(event);
  if (!cell || event.defaultPrevented) return;
  if ((event.key === "F10" && event.shiftKey) || event.key === "ContextMenu") {
    event.preventDefault();
    if (cell.matches("th[data-property]")) openColumn(cell);
    else if (cell.matches("td")) openCell(cell);
  } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
    if (cell.matches("th[data-property]")) {
      event.preventDefault();
      openColumn(cell);
    } else if (cell.matches("td") && !(cell.dataset.property && "cell" in gridOf(cell).dataset)) {
      event.preventDefault();
      cell.parentElement.querySelector("a.open")?.click();
    }
  }
});

function walk(menu, event) {
  const items = [...menu.querySelectorAll("button:not([hidden]), input")];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    event.stopPropagation();
    shut(menu);
  } else if (to !== undefined && !(event.target.matches("input") && event.key !== "ArrowDown" && event.key !== "ArrowUp")) {
    event.preventDefault();
    items[(to + items.length) % items.length].focus();
  }
}

// the row that is pointed at

let pointed = null;
const buttons = () => document.getElementById("row-actions");

function point(row) {
  pointed = row;
  const it = buttons();
  const region = row?.closest(".grid-region");
  if (!it) return;
  it.hidden = !row?.dataset.key || !region;
  if (it.hidden) return;
  const [box, frame] = [row.getBoundingClientRect(), region.getBoundingClientRect()];
  const head = region.querySelector("thead").getBoundingClientRect().bottom;
  it.hidden = box.bottom > frame.bottom || box.top < head - 1;
  it.style.setProperty("top", `${box.top}px`);
  it.style.setProperty("left", `${Math.min(frame.right - (frame.width - region.clientWidth), box.right) - it.offsetWidth - 4}px`);
  it.style.setProperty("height", `${box.height}px`);
}

document.addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch" || event.target.closest?.("#row-actions")) return;
  const row = event.target.closest?.("[data-grid] tbody tr") ?? null;
  if (row !== pointed) point(row);
});
document.addEventListener("scroll", () => point(null), { capture: true, passive: true });
for (const kind of ["htmx:after:swap", "grid:renewed", "keydown"]) document.addEventListener(kind, () => pointed && point(null));

// what a mouse learns from a title

const tip = () => document.getElementById("grid-tip");

document.addEventListener("focusin", (event) => {
  const it = tip();
  if (!it) return;
  const cell = event.target.matches?.("[data-grid] td") ? event.target : null;
  const titles = [cell?.querySelector("time[title]"), cell, cell?.parentElement].map((it) => it?.title).filter(Boolean);
  const text = cell?.matches(":focus-visible") ? titles.join(" · ") : null;
  it.hidden = !text;
  if (!text) return;
  it.textContent = text;
  const box = cell.getBoundingClientRect();
  it.style.setProperty("left", `${Math.min(box.left, innerWidth - it.offsetWidth - 8)}px`);
  it.style.setProperty("top", `${box.bottom + 4}px`);
  cell.setAttribute("aria-describedby", it.id);
});
document.addEventListener("focusout", (event) => {
  if (tip() && event.target.matches?.("[data-grid] td")) {
    tip().hidden = true;
    event.target.removeAttribute("aria-describedby");
  }
});

