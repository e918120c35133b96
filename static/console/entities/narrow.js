// On a narrow screen entities are a list, or the grid as it is; the server reads the choice from a cookie. In the list a tap
// opens an entity, or ticks it while several are selected.
import { clear } from "../grid/selection.js";

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-narrow]");
  if (!link || event.ctrlKey || event.metaKey) return;
  const { narrow } = link.dataset;
  document.documentElement.dataset.narrow = narrow;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `tablero_narrow=${narrow}; path=/ui/; max-age=31536000; samesite=lax${secure}`;
  const isHere = link.parentElement.querySelector("#view-grid[aria-current]");
  if (!isHere) return;
  event.preventDefault();
  event.stopPropagation(); // htmx need not load the same page
  for (const other of link.parentElement.querySelectorAll("a[data-narrow]")) other.toggleAttribute("aria-current", false);
  link.setAttribute("aria-current", "true");
}, true);

const isSelecting = () => "selecting" in document.body.dataset;

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-select-mode]")) {
    document.body.toggleAttribute("data-selecting");
    if (!isSelecting()) clear();
    show();
  }
  const link = isSelecting() && event.target.closest?.("[data-grid] a.open");
  if (!link) return;
  event.preventDefault();
  event.stopPropagation();
  link.closest("tr").querySelector('[name="key"]').click();
}, true);

function show() {
  document.querySelector("[data-select-mode]")?.setAttribute("aria-pressed", String(isSelecting()));
}

document.addEventListener("htmx:after:swap", show);
