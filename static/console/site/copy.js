// data-copy: a button puts that text on the clipboard, shows a tick, and says so.
import { on } from "./on.js";
import { notify } from "./toast.js";

export async function put(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // a page that came over plain HTTP from another machine has no clipboard
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
}

on("click", "[data-copy]", async (button) => {
  await put(button.dataset.copy);
  button.dataset.done = "";
  notify(document.getElementById("toasts").dataset.copied);
  setTimeout(() => delete button.dataset.done, 2000);
});
