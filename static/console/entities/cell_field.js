// The field of a cell before its editor comes. It has the focus, so it gets every key, pasted text and what an input method
// composes; no other part of the page listens to keys for it.
import { isModalOpen } from "../site/dialog.js";

/** A form with little but that field; `address` is where drafts of the grid's cells are kept. */
export function waitingForm(cell, address, text = "") {
  const form = document.getElementById("cell-waiting").content.firstElementChild.cloneNode(true);
  const { property } = cell.dataset;
  form.setAttribute("action", address);
  form.querySelector("h2").textContent = property;
  form.elements.key.value = cell.parentElement.dataset.key;
  form.elements.property.value = property;
  form.elements.value.value = text;
  form.elements.value.setAttribute("aria-label", property);
  return form;
}

/** Put what was typed into the field of the editor, and the caret where it was; `isAdded`: after the value it has. */
export function handOver(from, to, isAdded) {
  const before = isAdded ? to.value : "";
  const { value, selectionStart: start, selectionEnd: end } = from;
  to.value = before + value;
  to.setSelectionRange(before.length + start, before.length + end);
}

/** Resolves when the field can be replaced: no text is being composed in it, and no dialog has the keyboard. */
export async function ready(field) {
  for (;;) {
    if (isComposing.has(field)) await once(field, "compositionend");
    else if (isModalOpen()) await once(document, "close");
    else return;
  }
}

const isComposing = new WeakSet();
document.addEventListener("compositionstart", ({ target }) => isComposing.add(target), { capture: true });
document.addEventListener("compositionend", ({ target }) => isComposing.delete(target), { capture: true });

/** After the event, and what the browser does next. */
function once(target, kind) {
  return new Promise((done) => target.addEventListener(kind, () => setTimeout(done), { capture: true, once: true }));
}
