// What a cell and a column have to say to the query: filter by this value, sort by this column.
import { card, field, run, send, setText } from "./query.js";

document.addEventListener("tablero:filter", async (event) => {
  const { cell, how } = event.detail;
  const head = cell.closest("table").rows[0].cells[cell.cellIndex];
  const body = new FormData();
  for (const [name, value] of Object.entries({ how, key: cell.parentElement.dataset.key, name: head.dataset.property, f: field().value })) body.set(name, value);
  const { status, found } = await send(card().dataset.narrow, body).catch(() => ({}));
  const text = found?.querySelector("[data-text]")?.dataset.text;
  if (status !== 200 || text === undefined) return;
  setText(text);
  run();
});

document.addEventListener("tablero:sort", (event) => {
  document.getElementById("query-sort").value = event.detail;
  run();
});

/** Which of the menu's offers mean something for a value of this type, or for none. */
export function offer(menu, cell) {
  const head = cell.closest("table").rows[0].cells[cell.cellIndex];
  const type = cell.dataset.state === "absent" ? "" : (cell.dataset.type ?? head.dataset.type ?? "");
  for (const button of menu.querySelectorAll("[data-for-types]"))
    button.hidden = !head.dataset.property || !button.dataset.forTypes.split(" ").includes(type || "absent");
}

// $select

document.addEventListener("submit", (event) => {
  const form = event.target.closest?.("[data-select-form]");
  if (!form) return;
  event.preventDefault();
  const isReset = event.submitter?.value === "*";
  const chosen = [...form.querySelectorAll("[name=s]:checked")].map(({ value }) => value);
  document.getElementById("query-select").value = isReset ? "" : chosen.join(",");
  form.closest("[popover]")?.hidePopover();
  run();
});
