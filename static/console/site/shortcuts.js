// Keys that work anywhere but in a field: ? shows the list, / goes to the filter, G and a letter to a page of the sidebar.
import { isModalOpen, open } from "./dialog.js";

const SOON = 1500; // milliseconds in which the letter has to come after G
let leader = -SOON;

/** Whether a key is not typed anywhere, and commands of one key are on. */
export function isPlain(event) {
  return (
    !(event.ctrlKey || event.metaKey || event.altKey || event.isComposing) &&
    document.documentElement.dataset.shortcuts !== "off" &&
    !isModalOpen() &&
    // in a cell that can be edited a character starts a new value
    !event.target.closest?.("input, textarea, select, [contenteditable], dialog, [data-cell] td[data-property]")
  );
}

document.addEventListener("keydown", (event) => {
  if (!isPlain(event)) return;
  if (event.key === "?" && document.getElementById("shortcuts")) {
    open("shortcuts");
    event.preventDefault();
  }
  if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (!field) return;
    field.focus();
    field.select?.();
    event.preventDefault();
  }
});

// before the grid, for which a letter alone may mean something
document.addEventListener(
  "keydown",
  (event) => {
    const isSecond = event.timeStamp - leader < SOON;
    leader = event.key.toLowerCase() === "g" && isPlain(event) ? event.timeStamp : -SOON;
    if (!isSecond || !isPlain(event)) return;
    const page = document.querySelector(`#sidebar [data-go="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!page) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    page.click();
  },
  true,
);
