// data-open="ID": a button opens that dialog, also one that would submit a form; data-close or a click on its backdrop
// closes it. Esc and focus are the browser's own.
export function open(id) {
  for (const menu of document.querySelectorAll("[popover]:popover-open")) menu.hidePopover();
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
}

/** Whether a dialog has the keyboard: keys are for nothing below it, also while nothing in it has the focus. */
export function isModalOpen() {
  return document.querySelector("dialog:modal") !== null;
}

/** Whether the user types in a field outside of a part that came late. */
export function isTypingOutside(part) {
  const { activeElement: at } = document;
  return !part.contains(at) && at.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]:not(td)");
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-open]:not(.sidebar)");
  if (opener) {
    event.preventDefault();
    open(opener.dataset.open);
  }
  event.target.closest("[data-close]:not(#toasts)")?.closest("dialog")?.close();
  if (event.target.matches("dialog") && !within(event.target.getBoundingClientRect(), event)) event.target.close();
});

function within(box, { clientX: x, clientY: y }) {
  return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
}

// a menu is walked with the arrows too
document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.(".menu-anchor");
  if (!menu || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const list = menu.querySelector("[popover]");
  if (!list.matches(":popover-open")) return;
  const items = [...list.querySelectorAll("a, button")];
  const at = items.indexOf(document.activeElement);
  const next = event.key === "ArrowDown" ? at + 1 : at < 0 ? items.length - 1 : at - 1;
  items[(next + items.length) % items.length]?.focus();
  event.preventDefault();
});

// the first thing to read after a form was refused
document.querySelector("[data-error-summary]")?.focus();
