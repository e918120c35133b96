// The ways into the grid: a skip link, the key E, and the arrow down out of the filter.
import { current, enter } from "./grid.js";
import { isPlain } from "../site/shortcuts.js";

export function enterGrid() {
  const grid = document.querySelector("#results [data-grid]");
  if (grid) enter(current(grid), grid);
  else document.querySelector("#results :is(.documents, .single, .empty) :is(a, button, summary)")?.focus();
}

document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-enter-grid]")) return;
  event.preventDefault();
  enterGrid();
});

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "e" || event.shiftKey || event.defaultPrevented || !isPlain(event)) return;
  if (event.target.closest?.("[data-grid]")) return;
  event.preventDefault();
  enterGrid();
});
