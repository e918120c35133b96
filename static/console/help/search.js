// The arrow keys go from the field of the search to its results, through them, and back.
import { bind } from "../site/commands.js";

function search({ target }) {
  return target.closest?.("[data-search], [data-result]");
}

function step(current, { key }) {
  const stops = [document.querySelector("[data-search]"), ...document.querySelectorAll("[data-result]")];
  const next = stops[stops.indexOf(current) + (key === "ArrowDown" ? 1 : -1)];
  if (!next) return false;
  next.focus();
}

bind(search, { "ArrowDown ArrowUp": step });
