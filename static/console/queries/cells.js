// What a cell and a column have to say to the query: filter by this value, sort by this column.
import { get } from "../site/request.js";
import { card, field, run, send, setText } from "./query.js";

/** The sort order of the query. */
export const sortField = () => document.querySelector("#query-tools [name=sort]");

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
  sortField().value = event.detail;
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

const menu = () => document.getElementById("select-menu");

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("[data-select-open]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (menu().matches(":popover-open")) return menu().hidePopover();
  menu().textContent = menu().dataset.wait;
  menu().showPopover();
  below(link);
  const { found } = await get(link.href);
  menu().replaceChildren(document.adoptNode(found.getElementById("select-choice")));
  below(link);
  menu().querySelector("input[type=search]").focus();
});

function below(link) {
  const box = link.getBoundingClientRect();
  const { style, offsetWidth: width } = menu();
  style.setProperty("left", `${Math.max(8, Math.min(box.right - width, innerWidth - width - 8))}px`);
  style.setProperty("top", `${box.bottom + 4}px`);
  style.setProperty("max-height", `${Math.max(240, innerHeight - box.bottom - 12)}px`);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && menu()?.matches(":popover-open")) document.getElementById("select-button")?.focus();
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest?.("#select-menu [data-select-form]");
  if (!form) return;
  event.preventDefault();
  const boxes = [...form.querySelectorAll("[name=s][type=checkbox]")];
  const chosen = boxes.filter((box) => box.checked).map(({ value }) => value);
  const isAll = event.submitter?.value === "*" || chosen.length === boxes.length;
  document.querySelector("#query-tools [name=s]").value = isAll ? "" : chosen.join(",");
  menu().hidePopover();
  document.getElementById("select-button").focus();
  run();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-unsort]");
  if (!link) return;
  event.preventDefault();
  sortField().value = "";
  run();
});
