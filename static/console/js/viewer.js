// V on a cell, or [data-view] in a menu, shows its whole value in a dialog; its tabs look at it in other ways.
import { get } from "./answer.js";
import { areLettersOn, propertyOf } from "./grid.js";

function dialogOf() {
  let dialog = document.getElementById("viewer-dialog");
  if (!dialog) {
    dialog = Object.assign(document.createElement("dialog"), { id: "viewer-dialog", className: "dialog wide" });
    document.body.append(dialog);
  }
  return dialog;
}

async function show(address, cell) {
  const { status, found } = await get(address);
  const viewer = found.getElementById("viewer");
  if (status !== 200 || !viewer) return;
  const dialog = dialogOf();
  dialog.setAttribute("aria-label", viewer.querySelector("[role=region]").getAttribute("aria-label"));
  dialog.replaceChildren(document.adoptNode(viewer));
  if (cell) dialog.addEventListener("close", () => cell.focus(), { once: true });
  if (!dialog.open) dialog.showModal();
  else dialog.querySelector("[aria-current]")?.focus();
}

/** Show the whole value of a cell of a grid. */
export function view(cell) {
  const grid = cell.closest("[data-grid]");
  const query = new URLSearchParams({ key: cell.parentElement.dataset.key, property: propertyOf(cell) });
  show(`${grid.dataset.value}?${query}`, cell);
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "v" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.isTrusted && !areLettersOn()) return;
  if (!event.target.matches?.("[data-grid] td")) return;
  if (!event.target.closest("[data-grid]").dataset.value || !propertyOf(event.target)) return;
  event.preventDefault();
  view(event.target);
});

document.addEventListener("click", (event) => {
  const tab = event.target.closest?.("#viewer-dialog a[data-as]");
  if (!tab) return;
  event.preventDefault();
  show(tab.href);
});
