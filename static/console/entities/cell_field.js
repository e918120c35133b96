// The field of a cell before its editor comes. It has the focus, so it gets every key, pasted text and what an input method
// composes; no other part of the page listens to keys for it.
import { isModalOpen } from "../site/dialog.js";

/** A form with nothing but that field; `address` is where drafts of the grid's cells are kept. */
export function waitingForm(cell, address, text = "") {
  const form = document.createElement("form");
  form.className = "cell-editor";
  form.dataset.size = "line";
  form.setAttribute("action", address);
  const field = document.createElement("textarea");
  field.className = "mono cell-value";
  field.setAttribute("aria-label", cell.dataset.property);
  Object.assign(field, { name: "value", rows: 1, spellcheck: false, autocomplete: "off", autocapitalize: "none", placeholder: " ", value: text });
  const box = document.createElement("div");
  box.className = "cell-field";
  box.append(hidden("key", cell.parentElement.dataset.key), hidden("property", cell.dataset.property), field);
  const head = document.createElement("div");
  head.className = "cell-head"; // seen on a phone
  head.append(Object.assign(document.createElement("h2"), { className: "mono", textContent: cell.dataset.property }));
  form.append(head, box);
  return form;
}

function hidden(name, value) {
  return Object.assign(document.createElement("input"), { type: "hidden", name, value });
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
