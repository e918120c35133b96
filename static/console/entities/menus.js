// Menus of a header and of a cell, the buttons of the row that is pointed at, and what a cell says when it has the focus.
import { bind } from "../site/commands.js";
import { on, onPage, onSubmit, onSwap } from "../site/on.js";
import { cellAt, enter, propertyOf } from "../grid/grid.js";
import { fit, hide, move, resize, setPinned } from "../grid/columns.js";
import { copyCell, copyRows } from "../grid/copy.js";
import { duplicate, pickedKeys, send } from "../grid/selection.js";
import { currentCell } from "./cell_row.js";
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
  const times = document.getElementById("times");
  menu.querySelector('[data-column-action="times"]').hidden = !times || head.dataset.type !== "Edm.DateTime";
  menu.querySelector("[data-times]").textContent = times?.dataset.label.trim() ?? "";
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

on("click", "[data-grid] th[data-property]", (head) => document.getElementById("column-menu") && openColumn(head));

const COLUMN_ACTIONS = {
  left: (name) => move(name, -1),
  right: (name) => move(name, 1),
  pin: (name) => setPinned(name, true),
  unpin: (name) => setPinned(name, false),
  hide,
  fit,
  times: () => document.getElementById("times").click(),
  "sort-up": sort,
  "sort-down": (name) => sort(`-${name}`),
  "sort-none": () => sort(""),
};

on("click", "[data-column-action]", ({ dataset }) => {
  const name = owner.dataset.property;
  shut(document.getElementById("column-menu"));
  COLUMN_ACTIONS[dataset.columnAction](name);
});
on("click", "[data-cell-action]", ({ dataset }) => {
  const cell = currentCell(owner); // its row may have been drawn again
  shut(document.getElementById("cell-menu"));
  act(dataset.cellAction, cell);
});
on("click", "[data-row-action]", ({ dataset }) => pointed && act(dataset.rowAction, pointed.cells[1]));

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
      if (pickedKeys().includes(key) && send("[data-delete]", cell)) return;
      return document.dispatchEvent(new CustomEvent("tablero:delete", { detail: key }));
  }
}

onSubmit("[data-column-width]", (form) => {
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

function openMenu(cell) {
  if (cell.matches("th[data-property]")) openColumn(cell);
  else if (cell.matches("td")) openCell(cell);
}

/** A cell that has no editor. */
function shownCell(event) {
  const cell = cellAt(event);
  return cell && !cell.matches("[data-grid][data-cell] td[data-property]") && cell;
}

function goIn(cell) {
  if (cell.matches("th[data-property]")) openColumn(cell);
  else if (cell.matches("td")) cell.parentElement.querySelector("a.open")?.click();
  else return false;
}

function inMenu({ target }) {
  return target.closest?.(".grid-menu");
}

function walk(menu, { key, target }) {
  if (target.matches("input") && !key.startsWith("Arrow")) return false;
  const items = [...menu.querySelectorAll("button:not([hidden]), input")];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[key];
  items[(to + items.length) % items.length].focus();
}

bind(inMenu, { "Escape Tab Shift+Tab": shut, "ArrowDown ArrowUp Home End": walk });
bind(cellAt, { "cell.menu": openMenu });
bind(shownCell, { "Enter Shift+Enter": goIn });

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
const pointedRow = () => pointed;
const pointNowhere = () => {
  if (pointed) point(null);
  return false;
};
onSwap(pointNowhere, ["grid:renewed"]);
onPage(() => {
  owner = pointed = null;
});
bind(pointedRow, { Any: pointNowhere }, 3);

// texts that a mouse shows as titles

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

