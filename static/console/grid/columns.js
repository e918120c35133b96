// Columns of the grid are moved, pinned, hidden, made wider: the address says how, and the server remembers it.
import { bind } from "../site/commands.js";
import { on, onClick, onPage, onSwap, openEmpty, pageSignal } from "../site/on.js";
import { get, json, post } from "../site/request.js";
import { enter, neededWidth, pin } from "./grid.js";

const STEP = 16; // pixels
const [LEAST, MOST, MOST_FITTED] = [40, 2000, 800];
const grid = () => document.querySelector("#results [data-grid]");
const heads = () => [...(grid()?.querySelectorAll("th[data-property]") ?? [])];
const headOf = (name) => heads().find((head) => head.dataset.property === name);
const colOf = (head) => grid().querySelectorAll("col")[head.cellIndex];

/** As console/columns.py reads it: what need not be said is left out. */
function write(shown, hidden = grid().dataset.hidden) {
  const items = [...shown];
  if ("rest" in grid().dataset) {
    while (items.length && isLoose(items.at(-1))) items.pop();
    if (items[0] && text(items[0]) === "!PartitionKey" && items[1] && text(items[1]) === "!RowKey") items.splice(0, 2);
    return [...items.map(text), ...hidden.split(",").filter(Boolean).map((name) => `-${name}`), "*"].join(",");
  }
  return items.map(text).join(",");
}

function text(head) {
  return `${head.classList.contains("pinned") ? "!" : ""}${head.dataset.property}${head.dataset.width ? `:${head.dataset.width}` : ""}`;
}

function isLoose(head) {
  return "loose" in head.dataset && !head.dataset.width && !head.classList.contains("pinned");
}

let turn = Promise.resolve();

/** Make changes one after the other, each on the page that the one before it has drawn. */
const inTurn = (change) => (...given) => {
  const left = pageSignal();
  const run = () => left.aborted || change(...given);
  return (turn = turn.then(run, run));
};

/** As inTurn, for a column that may be gone by then. */
const ofColumn = (change) => inTurn((name, ...more) => headOf(name) && change(name, ...more));

const draw = (address) => htmx.ajax("GET", address, { source: "#results", target: "#results", swap: "outerHTML", push: "true" });

async function go(columns) {
  const address = new URL(document.getElementById("results").dataset.here, location.href);
  address.searchParams.set("cols", columns);
  const body = new FormData(document.getElementById("selection"));
  body.set("cols", columns);
  await Promise.all([
    post(document.getElementById("columns-button").href.split("?")[0], body),
    draw(address.pathname + address.search),
  ]);
}

/** One place to the left or right, among those that are pinned alike; the focus goes with it. */
export const move = ofColumn((name, by) => place(name, heads().indexOf(headOf(name)) + by));
const put = ofColumn(place);

async function place(name, to) {
  const shown = heads();
  const at = shown.findIndex((head) => head.dataset.property === name);
  const head = shown[at];
  if (!shown[to] || shown[to].classList.contains("pinned") !== head.classList.contains("pinned") || to === at) return;
  shown.splice(to, 0, ...shown.splice(at, 1));
  for (const it of shown.slice(0, Math.max(at, to) + 1)) delete it.dataset.loose;
  await go(write(shown));
  focus(name);
}

/** Unless something else has the focus by now. */
function focus(name) {
  const head = headOf(name);
  if (head && document.activeElement.matches("body, #results th")) enter(head);
}

export const hide = ofColumn(async (name) => {
  const next = headOf(name).nextElementSibling?.dataset.property ?? headOf(name).previousElementSibling?.dataset.property;
  const shown = heads().filter((head) => head.dataset.property !== name);
  await go(write(shown, [grid().dataset.hidden, name].filter(Boolean).join(",")));
  if (next) focus(next);
});

export const setPinned = ofColumn(async (name, on) => {
  headOf(name).classList.toggle("pinned", on);
  const shown = heads();
  const at = shown.findIndex((head) => head.dataset.property === name);
  const [head] = shown.splice(at, 1);
  delete head.dataset.loose;
  shown.splice(shown.filter((it) => it.classList.contains("pinned")).length, 0, head);
  await go(write(shown));
  focus(name);
});

function show(head, width) {
  const col = colOf(head);
  const next = Math.round(Math.min(MOST, Math.max(LEAST, width)));
  grid().width = Number(grid().width) + next - Number(col.width);
  col.width = head.dataset.width = next;
  pin(grid());
}

let resting = null; // { name, width, timer } of a width that is not in the address yet

/** At once on the page; in the address, when it rests. */
export function resize(name, width, wait = 600) {
  show(headOf(name), width);
  clearTimeout(resting?.timer);
  const timer = setTimeout(() => {
    resting = null;
    settle(name, width);
  }, wait);
  resting = { name, width, timer };
}

// the next key changes what is shown, which a grid drawn meanwhile does not have
onSwap(() => {
  const head = resting && headOf(resting.name);
  if (head) show(head, resting.width);
}, ["grid:renewed"]);

const settle = ofColumn(async (name, width) => {
  const hadFocus = document.activeElement === headOf(name);
  show(headOf(name), width); // heads drawn meanwhile do not have it
  for (const head of heads().slice(0, heads().indexOf(headOf(name)) + 1)) delete head.dataset.loose;
  await go(write(heads()));
  if (hadFocus) focus(name);
});

/** As wide as the longest value here. */
export function fit(name) {
  const { cellIndex } = headOf(name);
  resize(name, Math.min(MOST_FITTED, neededWidth(grid(), cellIndex)), 0);
}

function columnHead({ target }) {
  return target.matches?.("[data-grid] th[data-property]") && target;
}

const direction = ({ key }) => (key === "ArrowRight" ? 1 : -1);

bind(columnHead, {
  "Alt+Shift+ArrowLeft Alt+Shift+ArrowRight": (head, event) => void move(head.dataset.property, direction(event)),
  "Alt+ArrowLeft Alt+ArrowRight": (head, event) => resize(head.dataset.property, Number(colOf(head).width) + direction(event) * STEP),
});

// with a pointer: the edge of a header resizes, the rest of it moves

const EDGE = 7;
let drag = null;
onPage(() => {
  clearTimeout(resting?.timer);
  resting = null;
  drag = null;
});

function headAt(event) {
  return event.target.closest?.("[data-grid] th[data-property]");
}

function isEdge(head, event) {
  return head.getBoundingClientRect().right - event.clientX <= EDGE;
}

document.addEventListener("pointerdown", (event) => {
  const head = headAt(event);
  if (!head || event.button !== 0) return;
  const kind = isEdge(head, event) ? "resize" : "move";
  drag = { head, kind, x: event.clientX, width: Number(colOf(head).width), started: false, to: null };
});

document.addEventListener("pointermove", (event) => {
  const over = headAt(event);
  if (over && !drag) over.toggleAttribute("data-edge", isEdge(over, event));
  if (!drag) return;
  const by = event.clientX - drag.x;
  if (!drag.started && Math.abs(by) < 4) return;
  drag.started = true;
  event.preventDefault();
  getSelection()?.removeAllRanges();
  if (drag.kind === "resize") show(drag.head, drag.width + by);
  else aim(event);
});

/** Where the column would come to stand. */
function aim(event) {
  for (const head of heads()) delete head.dataset.drop;
  const over = document.elementsFromPoint(event.clientX, drag.head.getBoundingClientRect().top + 4).find((it) => it.matches?.("th[data-property]"));
  drag.to = over && over !== drag.head ? over : null;
  if (drag.to) drag.to.dataset.drop = heads().indexOf(drag.to) > heads().indexOf(drag.head) ? "after" : "before";
}

document.addEventListener("pointerup", () => {
  const done = drag;
  drag = null;
  if (!done?.started) return;
  for (const head of heads()) delete head.dataset.drop;
  // a drag is not a click on the header
  addEventListener("click", (event) => event.stopPropagation(), { capture: true, once: true });
  setTimeout(() => dispatchEvent(new Event("click")));
  if (done.kind === "resize") resize(done.head.dataset.property, Number(done.head.dataset.width), 0);
  else if (done.to) put(done.head.dataset.property, heads().indexOf(done.to));
});

function giveUpDrag() {
  if (drag.kind === "resize") show(drag.head, drag.width);
  for (const head of heads()) delete head.dataset.drop;
  drag = null;
  return false;
}

const dragged = () => drag;
bind(dragged, { Escape: giveUpDrag });

document.addEventListener("dblclick", (event) => {
  const head = headAt(event);
  if (head && isEdge(head, event)) fit(head.dataset.property);
});

// the choice of all columns

const menu = () => document.getElementById("columns-menu");

async function load(address) {
  const { found } = await get(address);
  menu().replaceChildren(...found.body.children);
}

onClick("[data-columns]", async (button) => {
  if (!openEmpty(menu(), button)) return;
  await load(button.href);
  menu().querySelector("input[type=search]")?.focus();
});

/** Ticked columns show at once; the list stays open. */
const apply = inTurn(async (form, submitter) => {
  const body = new FormData(form, submitter);
  const { here, choice } = await json(form.action, { method: "POST", body });
  await draw(here);
  if (!menu()?.matches(":popover-open")) return;
  const top = menu().scrollTop;
  const { id } = document.activeElement;
  const search = () => menu().querySelector("input[type=search]");
  const { value } = search();
  await load(choice);
  menu().scrollTop = top;
  if (value) {
    search().value = value;
    search().dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (id && document.activeElement === document.body) document.getElementById(id)?.focus();
});

on("submit", "#columns-menu form", (form, event) => {
  if (!form.action.endsWith("/columns/")) return;
  event.preventDefault();
  apply(form, event.submitter);
});
on("change", "#columns-menu #columns-form", (form) => apply(form));
