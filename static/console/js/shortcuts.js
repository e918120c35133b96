// Keys that work anywhere but in a field: ? shows the list, / goes to the filter.
import { open } from "./dialog.js";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.documentElement.dataset.shortcuts === "off") return;
  if (event.target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
  if (event.key === "?" && document.getElementById("shortcuts")) {
    open("shortcuts");
    event.preventDefault();
  }
  if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (!field) return;
    field.focus();
    field.select();
    event.preventDefault();
  }
});
