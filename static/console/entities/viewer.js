// Alt+V on a cell, the menu of a cell, or a link with data-look, shows its whole value in a dialog; the tabs there look at it in other ways.
import { get } from "../site/request.js";
import { isChord, propertyOf } from "../grid/grid.js";
import { show } from "../site/part_dialog.js";

async function open(address) {
  const { status, found } = await get(address);
  const viewer = found.getElementById("viewer");
  if (status === 200 && viewer) show(viewer.dataset.title, viewer, viewer.querySelector("[aria-current]"));
}

/** Show the whole value of a cell of a grid. */
export function view(cell) {
  const query = new URLSearchParams({ key: cell.parentElement.dataset.key, property: propertyOf(cell) });
  const { asof } = cell.closest("[data-grid]").dataset;
  if (asof) query.set("asof", asof);
  open(`${cell.closest("[data-grid]").dataset.value}?${query}`);
}

document.addEventListener("keydown", (event) => {
  if (!isChord(event, "v")) return;
  if (!event.target.matches?.("[data-grid][data-value] tr[data-key] > td") || !propertyOf(event.target)) return;
  event.preventDefault();
  view(event.target);
});

document.addEventListener("click", (event) => {
  const tab = event.target.closest?.("#part-dialog a[data-as], a[data-look]");
  if (!tab || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  open(tab.href);
});
