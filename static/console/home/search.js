// Ctrl+K, or the field in the top bar, opens the palette, whose code comes with its first use.
import { anywhere, bind, commandsAt } from "../site/commands.js";
import { outsideFields } from "../site/dialog.js";
import { pastedRequestId } from "../site/request_id.js";

const fields = document.querySelectorAll("[data-palette]");
const shortcut = document.querySelector(".search-field > kbd");
if (shortcut && navigator.platform.startsWith("Mac")) shortcut.textContent = "⌘ K";

async function open(opener, text = "") {
  const dialog = document.getElementById("palette");
  const field = dialog.querySelector("input");
  if (dialog.open) return field.select();
  for (const menu of document.querySelectorAll("[popover]:popover-open")) menu.hidePopover();
  // those of the page below, before the dialog has its keyboard
  const here = commandsAt(opener.matches("[data-palette]") ? document.body : opener);
  dialog.showModal();
  field.value = text;
  field.focus(); // at once: what is typed while the code comes is kept
  const { show } = await import("./palette.js");
  show(opener, here);
}

if (document.getElementById("palette")) {
  bind(anywhere, { "palette.open": () => void open(document.activeElement) });
  for (const field of fields) {
    field.addEventListener("click", (event) => {
      event.preventDefault();
      open(field);
    });
    // who comes by Tab may type, and is not taken elsewhere before
    field.addEventListener("input", () => {
      const text = field.value;
      field.value = "";
      open(field, text);
    });
  }
  // the id of a request, or a text with one, as the message of an exception: pasted anywhere, it is looked for
  addEventListener("paste", (event) => {
    const field = event.target.closest?.("#palette input");
    const id = (field || outsideFields(event)) && !event.defaultPrevented && pastedRequestId(event);
    if (!id) return;
    event.preventDefault();
    if (!field) return void open(document.activeElement, id);
    field.value = id;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
