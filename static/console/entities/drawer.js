// The drawer over the grid: entities are opened, added and duplicated there; ?open= says which one it is.
import "./entity.js";
import { bind } from "../site/commands.js";
import { on, onPage, onSwap, pageSignal } from "../site/on.js";
import { enter, rowOf } from "../grid/grid.js";
import { isModalOpen, isTypingOutside, outsideFields } from "../site/dialog.js";
import { draftOf } from "../site/drafts.js";
import { anyDirty, guarded } from "../site/unsaved.js";

const PATIENCE = 200; // milliseconds for which nothing is shown
let awaited = null; // the address that the drawer opens for
let loads = 0;
let coming = null; // the entity of the row that one stepped to, until it is here
let drawer = null; // the page's drawer, if it has one
let place = null; // where the focus was: { key, column } of a cell, or { element }

const shown = () => (!drawer || drawer.hidden ? undefined : drawer.querySelector("[data-entity]")?.dataset.entity);

function remember(token) {
  const address = new URL(location.href);
  if (token) address.searchParams.set("open", token);
  else address.searchParams.delete("open");
  history.replaceState(history.state, "", address);
}

function open(address, from = document.activeElement) {
  if (drawer.hidden) {
    const cell = from?.closest?.("[data-grid] tbody td");
    place = cell ? { key: cell.parentElement.dataset.key, column: cell.cellIndex } : { element: from };
  }
  load(address);
}

/** The later of two loads is shown: the drawer's hx-sync ends the earlier. */
async function load(address, token = null) {
  if (drawer.hidden) setTimeout(wait, PATIENCE, (awaited = address));
  const number = ++loads;
  coming = token;
  try {
    await htmx.ajax("GET", address, { source: drawer, target: drawer });
  } finally {
    if (number === loads) endWait();
  }
}

/** Without an answer to show there is nothing to be open for. */
function endWait() {
  awaited = coming = null;
  if (isWaiting()) close();
}

/** Open at once, with room for the content on its way. */
function wait(address) {
  if (awaited !== address || !drawer?.hidden) return;
  drawer.replaceChildren(document.getElementById("drawer-waiting").content.cloneNode(true));
  drawer.hidden = false;
  if (!isTypingOutside(drawer)) drawer.querySelector("[data-focus]").focus({ preventScroll: true });
}

const isWaiting = () => drawer.querySelector("[data-drawer-waiting]") !== null;

function reload(token) {
  load(`${drawer.dataset.address}?${new URLSearchParams({ key: token })}`);
}

/** Mark the row of the open entity. */
function mark() {
  const token = shown();
  for (const row of document.querySelectorAll("tr[data-key]")) row.toggleAttribute("data-opened", row.dataset.key === token);
  for (const button of drawer?.querySelectorAll("[data-drawer-step]") ?? []) button.disabled = !beside(Number(button.dataset.drawerStep));
}

function close() {
  hide();
  const cell = rowOf(place?.key)?.cells[place.column];
  if (cell) enter(cell);
  else place?.element?.focus?.();
}

function hide() {
  htmx.trigger(drawer, "htmx:abort"); // an answer on its way would come too late
  awaited = coming = null;
  drawer.hidden = true;
  drawer.replaceChildren();
  remember();
  mark();
}

/** The link of the entity that follows or precedes the one that is open or about to be, in the order of the grid. */
function beside(step) {
  const row = rowOf(coming ?? shown());
  return (step > 0 ? row?.nextElementSibling : row?.previousElementSibling)?.querySelector("a.open");
}

function go(step) {
  const link = beside(step);
  if (!link) return;
  guarded(() => {
    place = { key: link.closest("tr").dataset.key, column: place?.column ?? 0 };
    load(link.href, place.key);
  });
}

on("click", "[data-drawer-close]", () => guarded(close));
on("click", "[data-drawer-step]", ({ dataset }) => go(Number(dataset.drawerStep)));
on("click", "a[href]", (link, event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || !drawer) return;
  const opens = link.matches("[data-drawer]") || (!drawer.contains(link) && link.pathname === drawer.dataset.new);
  if (!opens) return;
  event.preventDefault();
  guarded(() => open(link.href, document.activeElement.closest("[data-grid] td") ?? link));
});

document.addEventListener("entity:open", ({ detail }) => guarded(() => open(detail)));

const besideDrawer = ({ target }) => !isModalOpen() && shown() && !target.closest?.("dialog, select");

function inDrawer({ target }) {
  // where a menu is open, the key closes it
  return !isModalOpen() && drawer?.contains(target) && !drawer.querySelector("[popover]:popover-open");
}

function besideAdd(event) {
  return outsideFields(event) && document.querySelector('[aria-keyshortcuts="Alt+N"]');
}

bind(besideAdd, { "entity.new": (link) => link.click() });
bind(besideDrawer, { "drawer.previous": () => go(-1), "drawer.next": () => go(1) });
bind(inDrawer, { Escape: () => guarded(close) });

/** Show its new content: an entity, its form with errors, a conflict; or close, when it is done. */
function show() {
  if (!drawer.firstElementChild || isWaiting()) return;
  const done = drawer.querySelector("[data-done]")?.dataset.done;
  if (done) return finish(done);
  const entity = drawer.querySelector("[data-entity]");
  const isNew = drawer.hidden || awaited !== null;
  awaited = null;
  drawer.hidden = false;
  drawer.scrollTop = 0;
  if (entity) remember(entity.dataset.entity);
  const first = drawer.querySelector("[data-error-summary]") ?? drawer.querySelector("[autofocus]") ?? drawer.querySelector("[data-focus]");
  // a reload takes the focus from nowhere else on the page, and nothing takes it from a field
  if (first && !isTypingOutside(drawer) && (isNew || document.activeElement === document.body)) first.focus({ preventScroll: !isNew });
  if (entity) tell(entity);
  mark();
}

/**
 * The entity was inserted or deleted: the grid shows it, and the focus goes to its row. Without one on this page it is in no
 * row, where the next key would be for another entity.
 */
function finish(key) {
  const region = document.querySelector("#results .grid-region");
  if (rowOf(key) || !region) close();
  else {
    hide();
    region.focus({ preventScroll: true });
  }
  const seek = ({ detail }) => {
    const row = rowOf(key);
    if (!row && detail.isStale) return; // a refresh that was under way may not have seen it
    document.removeEventListener("grid:renewed", seek);
    if (row) enter(row.cells[place?.column ?? 1]);
  };
  document.addEventListener("grid:renewed", seek, { signal: pageSignal() });
  document.dispatchEvent(new CustomEvent("grid:changed", { detail: { keys: [key], isShown: true } }));
}

onSwap(mark, ["grid:renewed"]);

/** The grid shows what was saved. */
function tell({ dataset: { entity, etag } }) {
  if (rowOf(entity)?.dataset.etag === etag) return;
  document.dispatchEvent(new CustomEvent("grid:changed", { detail: { keys: [entity], isShown: true } }));
}

// changes saved or undone elsewhere on the page
document.addEventListener("grid:changed", ({ detail }) => {
  const token = shown();
  if (!token || detail?.isShown || anyDirty()) return;
  if (!detail?.keys?.length || detail.keys.includes(token)) reload(token);
});

onPage((left) => {
  place = awaited = coming = null;
  loads += 1; // loads of the page before end without a drawer
  drawer = document.getElementById("drawer");
  if (!drawer) return;
  // beside main, which is a container, and in some browsers what is fixed inside one is fixed to it
  document.querySelector(".layout")?.after(drawer);
  const filling = new MutationObserver(show);
  filling.observe(drawer, { childList: true });
  left.addEventListener("abort", () => filling.disconnect());
  const asked = new URLSearchParams(location.search).get("open");
  if (asked) {
    place = { key: asked, column: 1 };
    reload(asked);
  } else if (draftOf(drawer.dataset.new).length) open(drawer.dataset.new, document.body); // a reload took it away
});
