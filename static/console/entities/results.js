// The results after they were swapped or refreshed: the focus stays, what is selected or edited too.
import { bind } from "../site/commands.js";
import { on, onClick, onPage, onSwap } from "../site/on.js";
import { get, refresh } from "../site/request.js";
import { current, drawRest, enter, prepare, rowOf } from "../grid/grid.js";
import { field, focus, isTyped, run, setText } from "../queries/query.js";

const results = () => document.getElementById("results");
const grid = () => results()?.querySelector("[data-grid]");
let shown;
let before = null; // where the focus was

/** The cell that has the focus, or would get it. */
function placeInGrid() {
  const focused = document.activeElement?.closest?.("#results :is(td, th)");
  const cell = focused ?? (grid() && current(grid()));
  return cell && { key: cell.parentElement.dataset.key, row: cell.parentElement.rowIndex, column: cell.cellIndex, isFocused: Boolean(focused) };
}

/** Back to the same entity, or else to the same place. */
function goBack({ key, row, column, isFocused }) {
  const { rows } = grid();
  const { cells } = rowOf(key) ?? rows[Math.min(row, rows.length - 1)];
  if (!cells[column]) drawRest();
  const cell = cells[Math.min(column, cells.length - 1)];
  if (!isFocused) cell.tabIndex = 0;
  else if (!cell.contains(document.activeElement)) enter(cell);
}

document.addEventListener("htmx:before:swap", () => {
  before = { cell: placeInGrid(), isInside: results()?.contains(document.activeElement) };
});

onSwap(() => {
  const now = results();
  if (!now || now === shown) return;
  const asked = shown?.dataset.filter;
  shown = now;
  // a filter that came by a link is shown; one that is being typed is left alone
  if (field() && now.dataset.filter !== asked && !isTyped()) setText(now.dataset.filter, { isChecked: false });
  keepFocus();
  tell(now.dataset.summary.trim());
  agree();
  wait();
});

function keepFocus() {
  if (before?.cell?.isFocused && grid()) goBack({ ...before.cell, key: null });
  else if (before?.isInside && document.activeElement === document.body) {
    const place = results().querySelector(".grid-region, .documents, .empty");
    if (place) place.focus({ preventScroll: true });
    else focus();
  }
  before = null;
}

/** Read aloud, also when it is the same again. */
export function tell(text) {
  const said = document.getElementById("said");
  if (!said || !text) return;
  said.textContent = "";
  setTimeout(() => (said.textContent = text), 50);
}

// refreshing

let timer;
let isLooking = false;
let drawn = 0; // how many rows were drawn again by themselves: an answer that was asked for before may be older
let isStale = false; // something changed while a look was under way, which may not have seen it

function wait() {
  clearTimeout(timer);
  const seconds = Number(results()?.dataset.refresh);
  if (seconds) timer = setTimeout(look, seconds * 1000);
}

async function look() {
  isStale = isLooking;
  if (!results() || isLooking || document.hidden) return wait();
  isLooking = true;
  const asked = results();
  const before = drawn;
  try {
    const { found: page } = await refresh(asked.dataset.here);
    const found = page.getElementById("results");
    // another page may have come meanwhile
    if (!found || results() !== asked || drawn !== before) return;
    take(found);
    document.getElementById("facts").textContent = page.getElementById("facts").textContent;
  } catch {
    // no answer now: the next look may find one
  } finally {
    isLooking = false;
    if (isStale) look();
    else wait();
  }
}

function take(found) {
  const next = found.querySelector("[data-grid]");
  const isSame = grid() && next && heads(grid()) === heads(next);
  const place = placeInGrid();
  if (isSame) {
    rows(next);
    replace(found, ".pager");
  } else if (!results().querySelector("[data-editing]") && !document.querySelector(".grid-menu:popover-open")) {
    whole(found);
  }
  if (place && grid()) goBack(place);
  htmx.process(results());
  prepare();
  agree();
  document.dispatchEvent(new CustomEvent("grid:renewed", { detail: { isStale } }));
}

function heads(table) {
  return [...table.querySelectorAll("th[data-property]")].map((head) => `${head.dataset.property} ${head.dataset.type}`).join();
}

function replace(found, selector) {
  const [old, next] = [results().querySelector(selector), found.querySelector(selector)];
  if (old && next && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(next));
}

/** Other columns, or none were there: everything is new. */
function whole(found) {
  const region = results().querySelector(".grid-region");
  const [left, top] = [region?.scrollLeft, region?.scrollTop];
  results().replaceWith(document.adoptNode(found));
  shown = results();
  results().querySelector(".grid-region")?.scrollTo({ left, top, behavior: "instant" });
}

function rows(next) {
  const body = grid().tBodies[0];
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  let last = null;
  for (const row of [...next.tBodies[0].rows]) {
    const known = old.get(row.dataset.key);
    old.delete(row.dataset.key);
    const stays = known && (known.dataset.etag === row.dataset.etag || "editing" in known.dataset);
    const taken = stays ? known : document.adoptNode(row);
    if (stays) known.setAttribute("aria-rowindex", row.getAttribute("aria-rowindex"));
    else taken.dataset.changed = "";
    if (known && !stays) known.replaceWith(taken);
    else if ((last ? last.nextElementSibling : body.firstElementChild) !== taken) (last ? last.after(taken) : body.prepend(taken));
    if (stays) delete taken.dataset.changed;
    last = taken;
  }
  for (const gone of old.values()) if (!("editing" in gone.dataset)) gone.remove();
  grid().setAttribute("aria-rowcount", next.getAttribute("aria-rowcount"));
}

document.addEventListener("grid:changed", look);
document.addEventListener("tablero:row", () => {
  drawn += 1;
  isStale = isLooking;
});
document.addEventListener("visibilitychange", () => !document.hidden && Number(results()?.dataset.refresh) && look());
onPage(() => {
  shown = results();
  before = null;
  agree();
  wait();
});

/** The exact number of a whole table is that of its entry in the sidebar too, which may have an estimate. */
function agree() {
  const number = document.querySelector("#total[data-exact]")?.dataset.number;
  const entry = document.querySelector("#sidebar-tables [aria-current] > em");
  const isWhole = results() && !results().dataset.filter && !new URL(results().dataset.here, location).searchParams.has("asof");
  if (!number || !entry || !isWhole) return;
  // to write a number takes a browser long when it is the first one
  const isWritten = !entry.textContent.startsWith("~") && entry.textContent.replace(/\D/g, "") === number;
  if (!isWritten) entry.textContent = Number(number).toLocaleString(document.documentElement.lang);
}

// counting, which can be given up

let counting = null;

onClick("[data-count-exactly]", async (link) => {
  if (counting) return counting.abort();
  counting = new AbortController();
  const text = link.textContent;
  link.textContent = link.dataset.cancel;
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await get(link.href, counting.signal);
    const found = answer.found.getElementById("total");
    if (!link.isConnected) return; // the number of another query
    if (found) document.getElementById("total").replaceWith(document.adoptNode(found));
    tell(document.getElementById("total").textContent.trim());
    agree();
  } catch {
    link.textContent = text;
    link.removeAttribute("aria-busy");
  } finally {
    counting = null;
  }
});

// the query

on("change", "[data-submit]", (field) => field.form.requestSubmit());

const gridRegion = ({ target }) => target.matches?.(".grid-region") && target;
const besideQuery = ({ target }) => target.matches?.(".grid-region, [data-grid] :is(td, th)");

bind(besideQuery, { "query.run": () => run() });
bind(gridRegion, { "Enter Shift+Enter Alt+Enter": (region) => enter(current(region.querySelector("[data-grid]"))) });

onPage(() => document.querySelector("#sidebar-tables [aria-current]")?.scrollIntoView({ block: "nearest" }));
