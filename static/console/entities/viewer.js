// Alt+V on a cell, the menu of a cell, or a link with data-look, shows its whole value in a dialog; the tabs there look at it in other ways.
import { bind } from "../site/commands.js";
import { onClick } from "../site/on.js";
import { get } from "../site/request.js";
import { propertyOf } from "../grid/grid.js";
import { nextPart, show } from "../site/part_dialog.js";

async function open(address) {
  const { status, found } = await get(address, nextPart());
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

function viewable({ target }) {
  return target.matches?.("[data-grid][data-value] tr[data-key] > td") && propertyOf(target) && target;
}

bind(viewable, { "value.view": view });
onClick("#part-dialog a[data-as], .entity a[data-look]", (tab) => open(tab.href));
