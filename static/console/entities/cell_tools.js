// The tools of the cell editor: another type or form, a date, a new GUID, the bytes of a file.

/** `on` has what the editor does: retype(form), check(form), save(form). */
export function listen(on) {
  const formOf = (event) => event.target.closest?.("dialog #cell-editor");

  function put(form, text) {
    form.elements.value.value = text;
    form.elements.value.focus();
    on.check(form);
  }

  document.addEventListener("input", (event) => {
    const form = formOf(event);
    if (!form) return;
    if (event.target.name === "value") on.check(form);
    if (event.target.matches("[data-cell-moment]") && event.target.value) put(form, event.target.value);
  });

  document.addEventListener("change", async (event) => {
    const form = formOf(event);
    if (!form) return;
    if (["type", "form"].includes(event.target.name)) on.retype(form);
    const file = event.target.matches("[data-cell-upload]") && event.target.files[0];
    if (!file) return;
    form.querySelector('[name="form"][value="hex"]').checked = true;
    form.elements.from_form.value = "hex";
    put(form, await hexOf(file));
  });

  document.addEventListener("click", (event) => {
    const button = formOf(event) && event.target.closest("button");
    if (!button) return;
    const { form } = button;
    if (button.dataset.cellSuggest) {
      form.elements.type.value = button.dataset.cellSuggest;
      on.retype(form);
    } else if (button.matches("[data-cell-guid]")) put(form, guid());
    else if (button.dataset.cellText) put(form, button.dataset.cellText);
    else if (button.matches("[data-cell-pick]")) form.querySelector("[data-cell-moment]").showPicker();
  });

  // before the button itself copies it
  document.addEventListener(
    "click",
    (event) => {
      const button = formOf(event) && event.target.closest("[data-cell-copy]");
      if (button) button.dataset.copy = button.form.elements.value.value;
    },
    true,
  );
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
