// Ctrl+K, or the field in the top bar, opens the palette, whose code comes with its first use.
import { bind, commandsAt } from "../site/commands.js";
import { outsideFields } from "../site/dialog.js";
import { on, onClick, onPage } from "../site/on.js";
import { pastedRequestId } from "../site/request_id.js";

const palette = () => document.getElementById("palette");

onPage(() => {
  const shortcut = document.querySelector(".search-field > kbd");
  if (shortcut && navigator.platform.startsWith("Mac")) shortcut.textContent = "⌘ K";
});

async function open(opener, text = "") {
  const dialog = palette();
  const field = dialog.querySelector("input");
  if (dialog.open) return field.select();
  for (const menu of document.querySelectorAll("[popover]:popover-open")) menu.hidePopover();
  // commands of the page below, before the dialog has its keyboard
  const here = commandsAt(opener.matches("[data-palette]") ? document.body : opener);
  dialog.showModal();
  field.value = text;
  field.focus(); // at once: what is typed while the code comes is kept
  const { show } = await import("./palette.js");
  show(opener, here);
}

const withPalette = () => palette() !== null;
bind(withPalette, { "palette.open": () => void open(document.activeElement) });
onClick("[data-palette]", (field) => open(field));
// users who come by Tab may type, and are not taken elsewhere before
on("input", "[data-palette]", (field) => {
  const text = field.value;
  field.value = "";
  open(field, text);
});
// the id of a request, or a text with one, as the message of an exception: pasted anywhere, it is looked for
addEventListener("paste", (event) => {
  const field = event.target.closest?.("#palette input");
  const id = palette() && (field || outsideFields(event)) && !event.defaultPrevented && pastedRequestId(event);
  if (!id) return;
  event.preventDefault();
  if (!field) return void open(document.activeElement, id);
  field.value = id;
  field.dispatchEvent(new Event("input", { bubbles: true }));
});
