// Text can be composed in a cell as in a spreadsheet: by an input method, by dictation, or from a list of emoji. It is
// typed into the editor when it is complete; until then the cell shows it instead of its value.
const finePointer = matchMedia("(pointer: fine)"); // elsewhere a keyboard would cover the page

/** `start(cell, text)` opens the editor of an editable cell. */
export function listen(editable, start) {
  let content = []; // the cell's content before something was composed in it

  document.addEventListener("focusin", ({ target }) => {
    if (!finePointer.matches || !target.matches?.("td") || !editable(target)) return;
    target.setAttribute("contenteditable", "plaintext-only"); // input methods start nowhere else
    target.spellcheck = false;
  });
  document.addEventListener("focusout", ({ target }) => {
    if (target.matches?.("td")) target.removeAttribute("contenteditable");
  });

  document.addEventListener("beforeinput", (event) => {
    if (!event.target.matches?.("td") || event.isComposing) return;
    event.preventDefault();
    if (event.inputType === "insertText" && event.data) start(event.target, event.data);
  });
  document.addEventListener("compositionstart", ({ target }) => {
    if (!target.matches?.("td")) return;
    content = [...target.childNodes].map((node) => node.cloneNode(true));
    target.parentElement.dataset.editing = ""; // no refresh replaces it
  });
  document.addEventListener("compositionupdate", ({ target, data }) => {
    if (target.matches?.("td")) target.dataset.composed = data;
  });
  document.addEventListener("compositionend", ({ target, data }) => {
    if (!target.matches?.("td")) return;
    delete target.dataset.composed;
    delete target.parentElement.dataset.editing;
    target.replaceChildren(...content);
    if (data) start(target, data);
  });
}
