// The tools of the cell editor: another type or form, a date, a new GUID, the bytes of a file.

import { on } from "../site/on.js";

/** `retype(form)` and `check(form)` are the editor's. */
export function listen({ retype, check }) {
  const listenTo = (kind, selector, act, options) =>
    on(kind, `dialog #cell-editor ${selector}`, (element) => act(element, element.form), options);

  function put(form, text) {
    form.elements.value.value = text;
    form.elements.value.focus();
    check(form);
  }

  listenTo("input", "[name=value]", (_, form) => check(form));
  listenTo("input", "[data-cell-moment]", ({ value }, form) => value && put(form, value));
  listenTo("change", ":is([name=type], [name=form])", (_, form) => retype(form));
  listenTo("change", "[data-cell-upload]", async ({ files }, form) => {
    if (!files[0]) return;
    form.querySelector('[name="form"][value="hex"]').checked = true;
    form.elements.from_form.value = "hex";
    put(form, await hexOf(files[0]));
  });
  listenTo("click", "button[data-cell-suggest]", ({ dataset }, form) => {
    form.elements.type.value = dataset.cellSuggest;
    retype(form);
  });
  listenTo("click", "button[data-cell-guid]", (_, form) => put(form, guid()));
  listenTo("click", "button[data-cell-text]", ({ dataset }, form) => put(form, dataset.cellText));
  listenTo("click", "button[data-cell-pick]", (_, form) => form.querySelector("[data-cell-moment]").showPicker());
  // before the button itself copies it
  listenTo("click", "[data-cell-copy]", (button, form) => (button.dataset.copy = form.elements.value.value), true);
}

// randomUUID is only there for pages that came over HTTPS
export function guid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return hex(bytes).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}

async function hexOf(file) {
  return hex(new Uint8Array(await file.slice(0, 65537).arrayBuffer()));
}

function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
