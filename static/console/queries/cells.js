// Commands of a cell and a column that change the query: filter by this value, sort by this column.
import { onClick } from "../site/on.js";
import { headOf } from "../grid/grid.js";
import { card, field, run, send, setText } from "./query.js";

/** The sort order of the query. */
export const sortField = () => document.querySelector("#query-tools [name=sort]");

document.addEventListener("tablero:filter", async (event) => {
  const { cell, how } = event.detail;
  const body = new FormData();
  for (const [name, value] of Object.entries({ how, key: cell.parentElement.dataset.key, name: headOf(cell).dataset.property })) body.set(name, value);
  let status, found;
  do {
    body.set("f", field().value); // again for text typed meanwhile
    ({ status, found } = await send(card().dataset.narrow, body).catch(() => ({})));
  } while (status === 200 && field() && field().value !== body.get("f"));
  const text = found?.querySelector("[data-text]")?.dataset.text;
  if (status !== 200 || text === undefined) return;
  setText(text);
  run();
});

document.addEventListener("tablero:sort", (event) => {
  sortField().value = event.detail;
  run();
});

/** Offer only the menu's items that make sense for a value of this type, or for none. */
export function offer(menu, cell) {
  const head = headOf(cell);
  const type = cell.dataset.state === "absent" ? "" : (cell.dataset.type ?? head.dataset.type ?? "");
  for (const button of menu.querySelectorAll("[data-for-types]"))
    button.hidden = !head.dataset.property || !button.dataset.forTypes.split(" ").includes(type || "absent");
}

onClick("[data-unsort]", () => {
  sortField().value = "";
  run();
});
