// The query above a grid: its text, what the server says of it while it is typed, and one press that repairs it.
// The text lives in #filter; an editor that took its place keeps the two alike. Rules about filters are the server's.
import { enterGrid } from "../grid/entrance.js";
import { bind } from "../site/commands.js";
import { newest, on, onClick, onPage, onSwap } from "../site/on.js";
import { post, postInBackground } from "../site/request.js";
import { completing } from "./completion.js";

const PAUSE = 250; // milliseconds without a key before the text is checked
const PARTS = ["filter_error", "query-access", "query-hints", "query-builder"];

export const card = () => document.getElementById("query-card");
export const field = () => card()?.querySelector("#filter");
const form = () => document.getElementById("query");
const shown = () => document.getElementById("results")?.dataset.filter;

let editor = null; // the editor that replaces the field, if any
const current = () => (editor?.isConnected() ? editor : null);

/** The control that changed the text has the focus, or gets it. */
export function focus() {
  (current() ?? field()).focus();
}

/** Set the text as if it was typed: it is checked, and Ctrl+Z in the editor takes it back. */
export function setText(text, { isChecked = true } = {}) {
  if (field().value !== text) {
    field().value = text;
    current()?.set(text);
  }
  if (isChecked) checkSoon();
}

export function run() {
  form()?.requestSubmit();
}

// checking

let isHeld = false; // a fault that is told when the text is left

const checking = newest(PAUSE, async (signal) => {
  card().setAttribute("aria-busy", "true");
  try {
    const { status, found } = await postInBackground(card().dataset.check, ours(new FormData(form())), signal);
    if (status === 200) take(found);
  } catch {
    // given up for a newer one, or no answer: the next key asks again
  } finally {
    if (checking.isNewest(signal)) card()?.removeAttribute("aria-busy");
  }
});

/** The newest text is checked, soon or now. */
export const { now: check, stop: stopChecking } = checking;

export function checkSoon(...about) {
  invite();
  checking.soon(...about);
}

/** Run stands out while what is typed is not what is shown. */
function invite() {
  const isNew = field() && shown() !== undefined && field().value.trim() !== shown();
  form()?.querySelector("[data-run]")?.classList.toggle("primary", Boolean(isNew));
}

/** As post, for fields without a form of their own. */
export function send(address, body, signal) {
  return post(address, ours(body), signal);
}

function ours(body) {
  body.set("csrfmiddlewaretoken", card().dataset.token);
  return body;
}

/** Parts of the card in an answer take the place of those here; what typing on may end is no fault yet. */
export function take(found) {
  const problem = found.getElementById("filter_error");
  isHeld = Boolean(problem?.querySelector("[data-unfinished]")) && isTyped();
  if (isHeld) {
    problem.replaceChildren();
    found.getElementById("query-access")?.remove();
  }
  for (const id of PARTS) {
    const [old, next] = [document.getElementById(id), found.getElementById(id)];
    if (old && next) old.replaceWith(document.adoptNode(next));
  }
  judge();
}

/** Show the server's findings about the text where the text is. */
function judge() {
  const problem = document.getElementById("filter_error");
  const isWrong = Boolean(problem?.textContent.trim());
  if (isWrong) field()?.setAttribute("aria-invalid", "true");
  else field()?.removeAttribute("aria-invalid");
  current()?.judge(isWrong, [...card().querySelectorAll("[data-problem]")].map(read));
}

function read(element) {
  const { from, to, problem } = element.dataset;
  return { from: Number(from), to: Number(to), message: problem, isError: element.matches("#filter_error *, #filter_error") };
}

on("input", "#query-card #filter", checkSoon);
document.addEventListener("focusout", ({ target }) => isHeld && target.closest("#query-card :is(#filter, #filter-editor)") && checkSoon());
on("submit", "#query", checking.stop);

// offers: of a repair, of the smallest change that reads less

onClick("[data-offer]", ({ dataset }) => {
  setText(dataset.offer);
  focus();
  const at = Number(dataset.at);
  if (dataset.at) (current() ?? field()).setSelectionRange?.(at, at);
});

// links that take the query with them take what is typed

on("click", "a[data-takes-query]", (link) => {
  const address = new URL(link.href);
  if (field().value.trim()) address.searchParams.set("f", field().value);
  else address.searchParams.delete("f");
  link.href = address.href;
}, true);

// the answer to a run

let answered;
onPage(() => {
  answered = document.getElementById("results");
  editor = null;
  isHeld = false;
});

onSwap(() => {
  if (!card() || !field()) return;
  judge();
  invite();
  summarize();
  const drawn = document.getElementById("query-builder")?.dataset.of;
  const isDrawn = document.getElementById("query-by")?.value && drawn !== field().value.trim();
  if (isDrawn || (field().value.trim() !== shown() && isTyped())) checkSoon();
});

/** On a phone the filter is one line, and all else a sheet, which an answer without a fault closes. */
function summarize() {
  const results = document.getElementById("results");
  if (results === answered) return;
  answered = results;
  const line = document.getElementById("query-summary");
  line.textContent = shown() || line.dataset.none;
  if (!document.querySelector("#filter_error p") && card().matches(":popover-open")) card().hidePopover();
}

export function isTyped() {
  return current()?.hasFocus() || document.activeElement === field();
}

// the editor comes with the first focus

let isComposing = false;
for (const kind of ["compositionstart", "compositionend"])
  document.addEventListener(kind, (event) => (isComposing = event.type === "compositionstart"), true);

document.addEventListener("focusin", async (event) => {
  if (event.target !== field() || field().type === "hidden") return;
  const { edit } = await import("./editor.js");
  if (isComposing) await new Promise((done) => document.addEventListener("compositionend", done, { once: true }));
  if (!field() || field().type === "hidden") return;
  editor = edit(field(), { complete: completing(card), run, checkSoon, leave: enterGrid });
  judge();
});

function inQueryCard({ target }) {
  return target.closest?.("#query-card");
}

bind(inQueryCard, { "query.run": () => run() });
