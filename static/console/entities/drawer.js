// The drawer beside the grid: a[data-drawer] opens its entity there from 1280 px on; ?open= says which one it is.
import "./entity.js";
import { anyDirty, guarded } from "../site/unsaved.js";

const wide = matchMedia("(width >= 1280px)");
const drawer = document.getElementById("drawer");
let opener = null;

// beside main, which is a container, and in some browsers what is fixed inside one is fixed to it
if (drawer) document.querySelector(".layout")?.after(drawer);

function remember(token) {
  const address = new URL(location.href);
  if (token) address.searchParams.set("open", token);
  else address.searchParams.delete("open");
  history.replaceState(history.state, "", address);
}

function open(link) {
  opener = link;
  load(link.href);
}

function load(address) {
  htmx.ajax("GET", address, { target: "#drawer" });
}

function reload(token) {
  load(`${drawer.dataset.address}?${new URLSearchParams({ key: token })}`);
}

/** The row of what is open. */
function mark() {
  const token = drawer.hidden ? "" : drawer.querySelector("[data-entity]")?.dataset.entity;
  for (const row of document.querySelectorAll("tr[data-key]")) row.toggleAttribute("data-opened", row.dataset.key === token);
}

function close() {
  drawer.hidden = true;
  drawer.replaceChildren();
  remember("");
  mark();
  const row = opener?.closest("tr");
  const back = opener?.isConnected ? opener : row && document.querySelector(`tr[data-key="${row.dataset.key}"] a[data-drawer]`);
  back?.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-drawer-close]")) return guarded(close);
  const link = event.target.closest("a[data-drawer]");
  const isPlain = link && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (!isPlain || !wide.matches || !drawer) return;
  event.preventDefault();
  guarded(() => open(link));
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || !drawer?.contains(event.target)) return;
  if (event.target.closest("[popover]:popover-open")) return;
  event.preventDefault();
  guarded(close);
});

/** Whatever was put into it: an entity, its form with what is wrong, a conflict. */
function show() {
  if (!drawer.firstElementChild) return;
  const entity = drawer.querySelector("[data-entity]");
  const isNew = drawer.hidden;
  drawer.hidden = false;
  drawer.scrollTop = 0;
  if (entity) remember(entity.dataset.entity);
  const first = drawer.querySelector("[data-error-summary]") ?? drawer.querySelector("[data-focus]");
  // a reload takes the focus from nowhere else on the page
  if (first && (isNew || document.activeElement === document.body)) first.focus({ preventScroll: !isNew });
  if (entity) tell(entity);
  mark();
}

document.addEventListener("htmx:after:swap", () => drawer && mark());
if (drawer) new MutationObserver(show).observe(drawer, { childList: true });

/** The grid shows what was saved. */
function tell({ dataset: { entity, etag } }) {
  const row = document.querySelector(`tr[data-key="${entity}"]`);
  if (row?.dataset.etag === etag) return;
  document.dispatchEvent(new CustomEvent("grid:changed", { detail: { keys: [entity], isShown: true } }));
}

// what was saved or undone elsewhere on the page
document.addEventListener("grid:changed", ({ detail }) => {
  const token = drawer?.hidden === false && drawer.querySelector("[data-entity]")?.dataset.entity;
  if (!token || detail.isShown || anyDirty()) return;
  if (detail.keys.length === 0 || detail.keys.includes(token)) reload(token);
});

const asked = new URLSearchParams(location.search).get("open");
if (asked && drawer && wide.matches) {
  opener = document.querySelector(`tr[data-key="${CSS.escape(asked)}"] a[data-drawer]`);
  reload(asked);
}
