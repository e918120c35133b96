// The row of a cell that is edited: where it is now, what the server needs to draw it, and the row from its answer.
import { get } from "../site/request.js";
import { cellOf, enter, headOf } from "../grid/grid.js";

/** The cell itself, or the one that took its place when its row was drawn again. */
export function currentCell(cell) {
  return cell.isConnected ? cell : (cellOf(cell.parentElement.dataset.key, cell.dataset.property) ?? cell);
}

/** The address of the editor of a cell. */
export function addressOf(cell) {
  const row = cell.parentElement;
  const query = new URLSearchParams({
    key: row.dataset.key,
    property: cell.dataset.property,
    etag: row.dataset.etag,
    type: headOf(cell).dataset.type ?? "",
    next: location.pathname + location.search,
  });
  const { cell: editor, refused } = cell.closest("[data-grid]").dataset;
  return `${editor ?? refused}?${query}`;
}

/** Add the fields that the server needs to draw the row of a cell again. */
export function describeRow(body, cell) {
  const heads = [...cell.closest("table").querySelectorAll("th[data-property]")];
  for (const head of heads) body.append("column", head.dataset.property);
  body.set("index", cell.parentElement.getAttribute("aria-rowindex"));
}

/** The row as it is now: from the answer; or else, also where types are mixed, from the page as the server draws it. */
export async function renew(row, template) {
  const key = CSS.escape(row.dataset.key);
  const isMixed = row.closest("table").querySelector('th[data-type="mix"]');
  let next = isMixed ? null : template?.content.querySelector("tr");
  if (!next) {
    const { found } = await get(location.href);
    next = found.querySelector(`[data-grid] tr[data-key="${key}"]`) ?? template?.content.querySelector("tr");
  }
  if (!next) return;
  const box = row.querySelector('[name="key"]');
  document.adoptNode(next);
  if (box?.checked) next.querySelector('[name="key"]').checked = true;
  if (row.hasAttribute("aria-selected")) next.setAttribute("aria-selected", row.getAttribute("aria-selected"));
  const focused = [...row.cells].indexOf(document.activeElement);
  row.replaceWith(next);
  if (focused >= 0) enter(next.cells[focused]);
  window.htmx?.process(next);
  document.dispatchEvent(new CustomEvent("tablero:row", { detail: next }));
}

/** Where a key that ends the editing goes on; Enter stays. */
export function then(key) {
  const next = {
    Tab: (cell) => cell.nextElementSibling,
    BackTab: (cell) => cell.previousElementSibling,
    ArrowRight: (cell) => cell.nextElementSibling,
    ArrowLeft: (cell) => cell.previousElementSibling,
    ArrowDown: (cell) => cell.parentElement.nextElementSibling?.cells[cell.cellIndex],
    ArrowUp: (cell) => cell.parentElement.previousElementSibling?.cells[cell.cellIndex],
  }[key];
  return (cell) => {
    const to = cell && next?.(cell);
    if (to) enter(to, cell.closest("[data-grid]"));
    return to;
  };
}
