// data-open="ID": a button opens that dialog, also one that would submit a form; data-close or a click on its backdrop
// closes it. Esc and focus are the browser's own.
import { bind } from "./commands.js";
import { on, onPage } from "./on.js";

export function open(id) {
  for (const menu of document.querySelectorAll("[popover]:popover-open")) menu.hidePopover();
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
}

/** Whether a dialog has the keyboard: keys are for nothing below it, also while nothing in it has the focus. */
export function isModalOpen() {
  return document.querySelector("dialog:modal") !== null;
}

// where keys are typed, which a box that is ticked is not
const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]:not(td)";

/** Whether the user types in a field outside of a part that came late. */
export function isTypingOutside(part) {
  const { activeElement: at } = document;
  return !part.contains(at) && at.matches(FIELDS);
}

/** The place of a key that is typed nowhere: in no field and in no dialog. */
export function outsideFields({ target }) {
  return !isModalOpen() && !target.closest?.(`${FIELDS}, dialog`);
}

on("click", "[data-open]:not(.sidebar)", (opener, event) => {
  event.preventDefault();
  open(opener.dataset.open);
});
on("click", "[data-close]:not(#toasts)", (button) => button.closest("dialog")?.close());
document.addEventListener("click", (event) => {
  if (event.target.matches("dialog") && !within(event.target.getBoundingClientRect(), event)) event.target.close();
});

function within(box, { clientX: x, clientY: y }) {
  return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
}

// a menu is walked with the arrows too

function openMenu({ target }) {
  const list = target.closest?.(".menu-anchor")?.querySelector("[popover]");
  return list?.matches(":popover-open") && list;
}

function walk(list, { key }) {
  const items = [...list.querySelectorAll("a, button")];
  const at = items.indexOf(document.activeElement);
  const next = key === "ArrowDown" ? at + 1 : at < 0 ? items.length - 1 : at - 1;
  items[(next + items.length) % items.length]?.focus();
}

bind(openMenu, { "ArrowDown ArrowUp": walk });

// the first thing to read after a form was refused
onPage(() => document.querySelector("[data-error-summary]")?.focus());
