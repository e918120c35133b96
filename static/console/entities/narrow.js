// On a narrow screen entities are a list, or the grid as it is; the server reads the choice from a cookie. In the list a tap
// opens an entity, or ticks it while several are selected.
import { keepCookie, on, onSwap } from "../site/on.js";
import { prepare } from "../grid/grid.js";
import { clear } from "../grid/selection.js";

const isEarly = { capture: true };

on("click", "a[data-narrow]", (link, event) => {
  if (event.ctrlKey || event.metaKey) return;
  const { narrow } = link.dataset;
  document.documentElement.dataset.narrow = narrow;
  keepCookie("narrow", narrow);
  prepare();
  const isHere = link.parentElement.querySelector("[data-view=grid]");
  if (!isHere) return;
  event.preventDefault();
  event.stopPropagation(); // htmx need not load the same page
  for (const other of link.parentElement.querySelectorAll("a[data-narrow]")) other.toggleAttribute("aria-current", false);
  link.setAttribute("aria-current", "true");
}, isEarly);

const isSelecting = () => "selecting" in document.body.dataset;

on("click", "[data-select-mode]", () => {
  document.body.toggleAttribute("data-selecting");
  if (!isSelecting()) clear();
  show();
}, isEarly);

on("click", "[data-grid] a.open", (link, event) => {
  if (!isSelecting()) return;
  event.preventDefault();
  event.stopPropagation();
  link.closest("tr").querySelector('[name="key"]').click();
}, isEarly);

function show() {
  document.querySelector("[data-select-mode]")?.setAttribute("aria-pressed", String(isSelecting()));
}

onSwap(show);
