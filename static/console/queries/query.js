// The query above a grid: its text, what the server says of it while it is typed, and one press that repairs it.
// The text lives in #filter; an editor that took its place keeps the two alike. Rules about filters are the server's.
import { enterGrid } from "../grid/entrance.js";
import { post, postInBackground } from "../site/request.js";

const PAUSE = 250; // milliseconds without a key before the text is checked
const PARTS = ["filter_error", "query-access", "query-hints", "query-builder"];

export const card = () => document.getElementById("query-card");
export const field = () => document.getElementById("filter");
const form = () => document.getElementById("query");
const shown = () => document.getElementById("results")?.dataset.filter;

const nonce = card()?.dataset.nonce; // of the document, whatever part of it is exchanged later
let editor = null; // what took the place of the field, if anything did
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

let timer;
let asked = new AbortController();

export function checkSoon() {
  clearTimeout(timer);
  asked.abort(); // the newest wins
  timer = setTimeout(check, PAUSE);
}

export async function check() {
  clearTimeout(timer);
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  card().setAttribute("aria-busy", "true");
  try {
    const { status, found } = await postInBackground(card().dataset.check, ours(new FormData(form())), signal);
    if (status === 200) take(found);
  } catch {
    // given up for a newer one, or no answer: the next key asks again
  } finally {
    if (asked.signal === signal) card()?.removeAttribute("aria-busy");
  }
}

/** As post, for what is no form of its own. */
export function send(address, body, signal) {
  return post(address, ours(body), signal);
}

function ours(body) {
  body.set("csrfmiddlewaretoken", card().dataset.token);
  return body;
}

/** Parts of the card in an answer take the place of those here. */
export function take(found) {
  for (const id of PARTS) {
    const [old, next] = [document.getElementById(id), found.getElementById(id)];
    if (old && next) old.replaceWith(document.adoptNode(next));
  }
  judge();
}

/** What the server said of the text, shown where the text is. */
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

document.addEventListener("input", (event) => {
  if (event.target === field()) checkSoon();
});

document.addEventListener("submit", (event) => {
  if (event.target !== form()) return;
  clearTimeout(timer);
  asked.abort();
});

// offers: of a repair, of the smallest change that reads less

document.addEventListener("click", (event) => {
  const offer = event.target.closest?.("[data-offer]");
  if (!offer || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  setText(offer.dataset.offer);
  focus();
  const at = Number(offer.dataset.at);
  if (offer.dataset.at) (current() ?? field()).setSelectionRange?.(at, at);
});

// links that take the query with them take what is typed

document.addEventListener(
  "click",
  (event) => {
    const link = event.target.closest?.("a[data-takes-query]");
    if (!link) return;
    const address = new URL(link.href);
    if (field().value.trim()) address.searchParams.set("f", field().value);
    else address.searchParams.delete("f");
    link.href = address.href;
  },
  true,
);

// the answer to a run

let answered = document.getElementById("results");

document.addEventListener("htmx:after:swap", () => {
  if (!card() || !field()) return;
  judge();
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
  if (event.target !== field() || field().type === "hidden" || !nonce) return;
  const { edit } = await import("./editor.js");
  if (isComposing) await new Promise((done) => document.addEventListener("compositionend", done, { once: true }));
  if (field().type === "hidden") return;
  editor = edit(field(), { card, nonce, run, checkSoon, leave: enterGrid });
  judge();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
  if (!event.target.closest?.("#query-card")) return;
  event.preventDefault();
  run();
});
