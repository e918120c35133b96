// The ways into the grid: a skip link, the key E, and the arrow down out of the filter.
import { current, enter } from "./grid.js";
import { bind } from "../site/commands.js";
import { onClick } from "../site/on.js";
import { isPlain } from "../site/shortcuts.js";

export function enterGrid() {
  const grid = document.querySelector("#results [data-grid]");
  if (grid) enter(current(grid), grid);
  else document.querySelector("#results :is(.documents, .empty) :is(a, button, summary)")?.focus();
}

onClick("[data-enter-grid]", enterGrid);

function outsideGrid(event) {
  return !event.shiftKey && isPlain(event) && document.getElementById("results") && !event.target.closest?.("[data-grid]");
}

bind(outsideGrid, { "grid.enter": () => enterGrid() });
