// Changes by others as they happen. An event names an entity only; the server draws the page again, and what differs is
// marked. A row that is edited here stays as it is, so that saving meets a conflict that can be seen.
import { on, onPage, onSwap } from "../site/on.js";
import { refresh } from "../site/request.js";
import { current, drawRest, enter, prepare, rowOf } from "../grid/grid.js";
import { tell } from "./results.js";

const MARKED = 5000; // ms for which a changed cell is marked
const PAUSE = 1000; // ms between two looks at changes on this page
const LONG_PAUSE = 3000; // and at others, which may or may not belong to it
const QUIET = 5000; // ms between two sentences read aloud
const LONGEST = 30_000; // ms until another look, when there was no answer

const results = () => document.getElementById("results");
const grid = () => results()?.querySelector("[data-grid]");

const isLive = () => "live" in (results()?.dataset ?? {});

document.addEventListener("table:open", ({ detail }) => isLive() && !detail.isWhole && look());
document.addEventListener("table:change", ({ detail }) => isLive() && hear(detail));

// changes that were heard and not looked at: the last one of each entity

const heard = new Map();
let timer = null;
let last = 0; // when the page was looked at
let isLooking = false;
let isOutdated = false; // rows were drawn again after a look was sent: its answer may be older

for (const kind of ["tablero:row", "grid:renewed"]) document.addEventListener(kind, () => (isOutdated = true));

function hear(change) {
  const row = rowOf(change.key);
  if (row && row.dataset.etag === change.etag && change.op !== "d") return; // it was changed here
  heard.set(change.key, change);
  plan(row ? PAUSE : LONG_PAUSE);
}

let due = Infinity;

function plan(pause) {
  const at = Math.max(Date.now(), last + pause);
  if (at >= due || isLooking) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(look, at - Date.now());
}

async function look() {
  due = Infinity;
  clearTimeout(timer);
  if (isLooking || !results()) return;
  isLooking = true;
  isOutdated = false;
  const asked = results();
  const changes = new Map(heard);
  heard.clear();
  let pause = PAUSE;
  try {
    const { status, found } = await refresh(asked.dataset.here);
    last = Date.now();
    if (results() !== asked) return;
    if (isOutdated) hearAgain(changes);
    else if (status === 200) show(found, changes);
  } catch {
    if (results() !== asked) return;
    hearAgain(changes); // no answer now
    pause = LONGEST;
  } finally {
    isLooking = false;
    if (heard.size) plan(pause);
  }
}

function hearAgain(changes) {
  for (const [key, change] of changes) if (!heard.has(key)) heard.set(key, change);
}

// Rows that are changed from this page, until it is drawn again: their changes may be heard before they are answered.
const own = new Set();
document.addEventListener("grid:changing", ({ detail }) => detail.keys.forEach((key) => own.add(key)));
document.addEventListener("grid:renewed", () => own.clear());

const isEdited = (row) => "editing" in row.dataset || row.querySelector("[data-pending]");

function show(found, changes) {
  drawRest(found);
  drawRest();
  const next = new Map([...found.querySelectorAll("[data-grid] tr[data-key]")].map((row) => [row.dataset.key, row]));
  let cells = 0;
  let gone = 0;
  for (const row of grid()?.querySelectorAll("tr[data-key]") ?? []) {
    const { key } = row.dataset;
    const now = next.get(key);
    next.delete(key);
    if (isEdited(row)) {
      if (changes.has(key)) later.set(key, changes.get(key));
    } else if (now) {
      delete row.dataset.gone;
      if (row.dataset.etag !== now.dataset.etag) cells += renew(row, now, { isMarked: !own.has(key), why: explain(changes.get(key)) });
    } else if (changes.get(key)?.op === "d" && !("gone" in row.dataset)) {
      gone += 1;
      row.dataset.gone = "";
      row.title = changes.get(key).by ? `${results().dataset.liveMark} · ${explain(changes.get(key))}` : results().dataset.liveMark;
    }
  }
  prepare();
  offer([...next.keys()].filter((key) => changes.has(key) || fresh.has(key)));
  tellLater({ cells, gone });
}

/** The author of a change, if known, and its time. */
function explain(change) {
  if (!change) return "";
  const time = new Date(change.at).toLocaleTimeString(document.documentElement.lang);
  return change.by ? `${change.by} · ${time}` : time;
}

/** The cells of a row that differ, in their places: the focus stays. Returns how many were marked. */
function renew(row, now, { isMarked, why }) {
  const names = [...now.closest("table").querySelectorAll("th[data-property]")].map((head) => head.dataset.property);
  const table = row.closest("table");
  let changed = 0;
  names.forEach((name, at) => {
    const head = table.querySelector(`th[data-property="${CSS.escape(name)}"]`);
    const [old, cell] = [row.cells[head?.cellIndex], now.cells[at + 1]];
    if (!old || !cell || isSame(old, cell)) return;
    // without its tabindex for an instant, a cell would lose the focus
    const isKept = ({ name: attribute }) => attribute === "tabindex" && old.tabIndex === 0;
    for (const attribute of [...old.attributes]) if (!isKept(attribute)) old.removeAttribute(attribute.name);
    for (const attribute of cell.attributes) if (!isKept(attribute)) old.setAttribute(attribute.name, attribute.value);
    old.replaceChildren(...[...cell.childNodes].map((node) => document.adoptNode(node)));
    if (name === "Timestamp" || !isMarked) return; // it changes with every other
    mark(old, why);
    changed += 1;
  });
  row.dataset.etag = now.dataset.etag;
  window.htmx?.process(row);
  return changed;
}

function isSame(old, cell) {
  // as prepare() has left the old one
  for (const control of cell.querySelectorAll("a, input, button")) control.tabIndex = -1;
  const nodes = [...old.childNodes];
  return nodes.length === cell.childNodes.length && nodes.every((node, at) => node.isEqualNode(cell.childNodes[at]));
}

const marks = new WeakMap();

function mark(cell, why) {
  clearTimeout(marks.get(cell));
  if (why) cell.title = why;
  delete cell.dataset.live;
  void cell.offsetWidth; // the animation begins again
  cell.dataset.live = "";
  marks.set(cell, setTimeout(() => delete cell.dataset.live, MARKED)); // the title with the author stays
}

// changes that wait until an edit ends

const later = new Map();

function resume() {
  for (const [key, change] of later) {
    const row = rowOf(key);
    if (row && isEdited(row)) continue;
    later.delete(key);
    heard.set(key, change);
    plan(PAUSE);
  }
}

for (const kind of ["tablero:row", "focusin", "focusout"]) document.addEventListener(kind, () => later.size && setTimeout(resume));

// new entities, which would move the existing rows

const fresh = new Set();

function offer(keys) {
  fresh.clear();
  for (const key of keys) fresh.add(key);
  const news = results().querySelector("[data-live-news]");
  if (!news) return;
  const text = news.querySelector("span");
  const wasHidden = news.hidden;
  news.hidden = !keys.length;
  text.textContent = (keys.length === 1 ? text.dataset.one : text.dataset.many).replace("{}", keys.length);
  if (wasHidden && keys.length) tellLater({ text: `${text.textContent} ${news.querySelector("button").textContent}` });
}

on("click", "[data-live-show]", () => {
  offer([]);
  const now = grid();
  if (now) enter(current(now), now);
  document.dispatchEvent(new CustomEvent("grid:changed"));
});

// read aloud, but not all the time

let said = 0;
const unsaid = { cells: 0, gone: 0, text: "" };
let saying;

function tellLater({ cells = 0, gone = 0, text = unsaid.text }) {
  Object.assign(unsaid, { cells: unsaid.cells + cells, gone: unsaid.gone + gone, text });
  if (cells || gone || text) saying ??= setTimeout(say, Math.max(0, said + QUIET - Date.now()));
}

function say() {
  saying = undefined;
  said = Date.now();
  const { liveCells, liveGone } = results()?.dataset ?? {};
  const { cells, gone, text } = unsaid;
  Object.assign(unsaid, { cells: 0, gone: 0, text: "" });
  tell([cells && liveCells?.replace("{}", cells), gone && liveGone?.replace("{}", gone), text].filter(Boolean).join(". "));
}

let shown;
onSwap(() => {
  if (results() !== shown) fresh.clear();
  shown = results();
}, ["grid:renewed"]);
onPage(() => {
  for (const it of [heard, later, fresh, own]) it.clear();
  clearTimeout(saying);
  saying = undefined;
  Object.assign(unsaid, { cells: 0, gone: 0, text: "" });
  shown = results();
});
