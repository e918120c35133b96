// The results after they were swapped or refreshed: the focus stays, what is selected or edited too.
import { get, refresh } from "../site/request.js";
import { cellAt, current, enter, gridOf, prepare } from "../grid/grid.js";
import { field, focus, isTyped, run, setText } from "../queries/query.js";

const results = () => document.getElementById("results");
const grid = () => results()?.querySelector("[data-grid]");
let shown = results();
let before = null; // where the focus was

document.addEventListener("htmx:before:swap", () => {
  const cell = document.activeElement?.closest?.("#results :is(td, th)");
  before = { cell: cell && [cell.parentElement.rowIndex, cell.cellIndex], inside: results()?.contains(document.activeElement) };
});

document.addEventListener("htmx:after:swap", () => {
  const now = results();
  if (!now || now === shown) return;
  const asked = shown?.dataset.filter;
  shown = now;
  // a filter that came by a link is shown; one that is being typed is left alone
  if (field() && now.dataset.filter !== asked && !isTyped()) setText(now.dataset.filter, { isChecked: false });
  keepFocus();
  tell(now.dataset.summary.trim());
  wait();
});

function keepFocus() {
  if (before?.cell && grid()) {
    const row = grid().rows[Math.min(before.cell[0], grid().rows.length - 1)];
    enter(row.cells[Math.min(before.cell[1], row.cells.length - 1)]);
  } else if (before?.inside && document.activeElement === document.body) {
    const place = results().querySelector(".grid-region, .documents, .single, .empty");
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
let isStale = false; // something changed while a look was under way, which may not have seen it

function wait() {
  clearTimeout(timer);
  const seconds = Number(results()?.dataset.refresh);
  if (seconds) timer = setTimeout(look, seconds * 1000);
}

export async function look() {
  isStale = isLooking;
  if (!results() || isLooking || document.hidden) return wait();
  isLooking = true;
  const asked = results();
  try {
    const { found: page } = await refresh(asked.dataset.here);
    const found = page.getElementById("results");
    // another page may have come meanwhile
    if (!found || results() !== asked) return;
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
  if (isSame) {
    rows(next);
    replace(found, ".pager");
  } else if (!results().querySelector("[data-editing]") && !document.querySelector(".grid-menu:popover-open")) {
    whole(found);
  }
  htmx.process(results());
  prepare(results());
  document.dispatchEvent(new CustomEvent("grid:renewed", { detail: { isStale } }));
}

function heads(table) {
  return [...table.querySelectorAll("th[data-property]")].map((head) => `${head.dataset.property} ${head.dataset.type}`).join();
}

function replace(found, selector) {
  const [old, next] = [results().querySelector(selector), found.querySelector(selector)];
  if (old && next && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(next));
}

/** Other columns, or none were there: everything is new, and the focus goes back to the same entity. */
function whole(found) {
  const cell = document.activeElement?.closest?.("#results :is(td, th)");
  const place = cell && [cell.parentElement.dataset.key, cell.parentElement.rowIndex, cell.cellIndex];
  const region = results().querySelector(".grid-region");
  const [left, top] = [region?.scrollLeft, region?.scrollTop];
  results().replaceWith(document.adoptNode(found));
  shown = results();
  results().querySelector(".grid-region")?.scrollTo({ left, top, behavior: "instant" });
  if (!place || !grid()) return;
  const row = grid().querySelector(`tr[data-key="${place[0]}"]`) ?? grid().rows[Math.min(place[1], grid().rows.length - 1)];
  enter(row.cells[Math.min(place[2], row.cells.length - 1)]);
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
    if (known && !stays) exchange(known, taken);
    else if ((last ? last.nextElementSibling : body.firstElementChild) !== taken) (last ? last.after(taken) : body.prepend(taken));
    if (stays) delete taken.dataset.changed;
    last = taken;
  }
  for (const gone of old.values()) if (!("editing" in gone.dataset)) leave(gone);
  grid().setAttribute("aria-rowcount", next.getAttribute("aria-rowcount"));
}

/** One row for another, the focus in the same column. */
function exchange(known, taken) {
  const at = [...known.cells].findIndex((cell) => cell.contains(document.activeElement));
  const tabbed = [...known.cells].findIndex((cell) => cell.tabIndex === 0);
  known.replaceWith(taken);
  if (at >= 0) enter(taken.cells[at]);
  else if (tabbed >= 0) taken.cells[tabbed].tabIndex = 0;
}

function leave(gone) {
  const at = [...gone.cells].findIndex((cell) => cell.contains(document.activeElement));
  const near = gone.nextElementSibling ?? gone.previousElementSibling;
  gone.remove();
  if (at >= 0 && near) enter(near.cells[at]);
}

document.addEventListener("grid:changed", look);
document.addEventListener("visibilitychange", () => !document.hidden && Number(results()?.dataset.refresh) && look());
wait();

// counting, which can be given up

let counting = null;

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("[data-count-exactly]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (counting) return counting.abort();
  counting = new AbortController();
  const text = link.textContent;
  link.textContent = link.dataset.cancel;
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await get(link.href, counting.signal);
    const found = answer.found.getElementById("total");
    if (found) document.getElementById("total").replaceWith(document.adoptNode(found));
    tell(document.getElementById("total").textContent.trim());
  } catch {
    link.textContent = text;
    link.removeAttribute("aria-busy");
  } finally {
    counting = null;
  }
});

// the query

document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-submit]")) event.target.form.requestSubmit();
});

document.addEventListener("keydown", (event) => {
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key === "Enter" && (cellAt(event) || event.target.matches?.(".grid-region"))) {
    event.preventDefault();
    run();
  }
  if (event.key === "Enter" && event.target.matches?.(".grid-region") && !isCommand) enter(current(gridOf(event.target.firstElementChild)));
});
