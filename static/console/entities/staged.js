// Changed cells that wait until they are saved together: kept for this tab, by account and table, across its pages.
import { onPage, onSwap } from "../site/on.js";
import { announce, explain, post } from "../site/request.js";
import { cellOf } from "../grid/grid.js";
import { close, show } from "../site/part_dialog.js";
import { notify } from "../site/toast.js";

let bar = null; // the page's bar, if it has one
let dropped = []; // the last discarded changes, until something else is changed
let changes = [];

const placeOfBar = () => `tablero.staged.${bar.dataset.place}`;

function store() {
  if (changes.length) sessionStorage.setItem(placeOfBar(), JSON.stringify(changes));
  else sessionStorage.removeItem(placeOfBar());
  draw();
}

/** The change of a cell that waits, if there is one. */
export function find(cell) {
  return changes.find((change) => change.key === cell.parentElement.dataset.key && change.property === cell.dataset.property);
}

/** Keep what the server made of an edited cell; a later change of the same cell takes its place. */
export function keep(cell, template) {
  const { key, property, etag, type, form, text, removed } = template.dataset;
  const before = changes.find((change) => change.key === key);
  const rest = changes.filter((change) => change.key !== key || change.property !== property);
  const preview = template.content.textContent.trim();
  dropped = [];
  changes = [...rest, { key, property, etag: before?.etag ?? etag, type, form, text, removed, preview }];
  store();
}

function draw() {
  if (!bar) return;
  bar.hidden = changes.length + dropped.length === 0;
  for (const part of bar.querySelectorAll("[data-waiting]")) part.hidden = changes.length === 0;
  for (const part of bar.querySelectorAll("[data-dropped]")) part.hidden = changes.length > 0;
  bar.querySelector("[data-count]").textContent = changes.length;
  for (const cell of document.querySelectorAll("[data-grid] td[data-pending]")) if (!find(cell)) restore(cell);
  for (const change of changes) mark(change);
}

const before = new WeakMap();

function mark({ key, property, preview, removed }) {
  const cell = cellOf(key, property);
  if (!cell || cell.dataset.pending === preview) return;
  if (!before.has(cell)) before.set(cell, [...cell.childNodes]);
  const shown = document.createElement("bdi");
  shown.textContent = preview;
  cell.replaceChildren(shown);
  cell.dataset.pending = preview;
  cell.toggleAttribute("data-removed", Boolean(removed));
}

function restore(cell) {
  if (before.has(cell)) cell.replaceChildren(...before.get(cell));
  before.delete(cell);
  delete cell.dataset.pending;
  delete cell.dataset.removed;
}

function discard() {
  dropped = changes;
  changes = [];
  store();
  if (dropped.length) bar.querySelector("[data-restore]").focus();
}

async function send(apply) {
  const sent = changes;
  const body = new FormData();
  body.set("csrfmiddlewaretoken", bar.querySelector('[name="csrfmiddlewaretoken"]').value);
  body.set("changes", JSON.stringify(changes.map(({ preview, ...change }) => change)));
  if (apply) body.set("apply", "1");
  const { status, found } = await post(bar.dataset.address, body);
  if (status === 204) {
    changes = changes.filter((change) => !sent.includes(change)); // those that were made meanwhile wait on
    store();
    return location.reload();
  }
  announce(found);
  const form = found.getElementById("review");
  if (form) return show(bar.dataset.title, form, form.querySelector("[name=apply]"));
  notify(explain(found, status));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#staged button, #part-dialog #review button");
  if (!button) return;
  const line = button.closest("[data-line]");
  if (button.matches("[data-review]")) send(false);
  else if (button.matches("[data-save-all], [name=apply]")) send(true);
  else if (button.matches("[data-discard]")) discard();
  else if (button.matches("[data-restore]")) {
    changes = dropped;
    dropped = [];
    store();
  }
  else if (button.matches("[data-drop]")) {
    changes = changes.filter((change) => change.key !== line.dataset.key || change.property !== line.dataset.property);
    store();
  } else if (button.dataset.rebase) {
    for (const change of changes) if (change.key === button.dataset.key) change.etag = button.dataset.rebase;
    store();
  } else return;
  event.preventDefault();
  if (button.matches("[data-drop], [data-rebase]") && changes.length) send(false);
  else if (button.matches("[data-discard], [data-drop]")) close();
});

onSwap(draw, ["tablero:row", "grid:renewed"]);
onPage(() => {
  bar = document.querySelector("[data-staged-bar]");
  dropped = [];
  changes = bar ? JSON.parse(sessionStorage.getItem(placeOfBar()) ?? "[]") : [];
  draw();
});
