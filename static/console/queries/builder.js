// The filter drawn as rows: what is changed in them goes to the server, which answers the text they mean.
import "./proposals.js";
import { newest, on, onClick, onSwap } from "../site/on.js";
import { card, check, field, run, send as ask, setText, stopChecking, take } from "./query.js";

const PAUSE = 250; // milliseconds
const builder = () => document.getElementById("query-builder");
const rows = () => builder()?.querySelector("form");
const choice = () => document.getElementById("query-by");

let isShapeNew = false; // whether more than the value in a field changed, so that the rows have to be redrawn

// text or rows

onClick("[data-by]", (tab) => {
  choice().value = tab.dataset.by;
  mark();
  check();
});

function mark() {
  for (const tab of card().querySelectorAll("[data-by]")) {
    if (tab.dataset.by === choice().value) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
  const address = new URL(location.href);
  if ((address.searchParams.get("by") ?? "") === choice().value) return;
  if (choice().value) address.searchParams.set("by", choice().value);
  else address.searchParams.delete("by");
  window.history.replaceState(window.history.state, "", address);
}

onSwap(() => choice() && setTimeout(mark));

// rows that change

const sending = newest(PAUSE, async (signal, button) => {
  const form = rows();
  const body = new FormData(form, button);
  body.set("f", field().value);
  try {
    const { status, found } = await ask(form.action, body, signal);
    if (status === 200 || status === 422) show(found);
  } catch {
    // given up for a newer one, or no answer: the next change asks again
  }
});

function reshape() {
  isShapeNew = true;
  sending.soonest();
}

function show(found) {
  const next = found.getElementById("query-builder");
  if (!next) return;
  const { text } = next.dataset;
  const active = document.activeElement;
  const place = builder().contains(active) ? { id: active.id, start: active.selectionStart, end: active.selectionEnd } : null;
  if (isShapeNew || !place) isShapeNew = false;
  else keepFields(found, next);
  take(found);
  if (text !== undefined) setText(text, { isChecked: false });
  refocus(place);
}

/** While the user types in one of the fields, only the notes on each of them are new. */
function keepFields(found, next) {
  for (const note of builder().querySelectorAll("[data-note]")) {
    const said = next.querySelector(`#${CSS.escape(note.id)}`);
    if (said) note.replaceChildren(...said.childNodes);
  }
  next.remove();
}

function refocus(place) {
  const wanted = builder().querySelector("[data-focus]");
  const it = wanted ?? (place?.id && document.getElementById(place.id));
  if (!it || it === document.activeElement || (!wanted && !place)) return;
  it.focus();
  if (!wanted && place.start !== null && it.setSelectionRange && it.type === "text") it.setSelectionRange(place.start, place.end);
}

const isOfRows = (event) => event.target.form && event.target.form === rows();

document.addEventListener("input", (event) => {
  if (!isOfRows(event) || event.isComposing) return;
  stopChecking(); // its answer would redraw the rows
  if (event.target.matches("select, [type=checkbox], [type=radio]")) reshape();
  else sending.soon();
});

on("beforeinput", "#query-card :is(#filter, #filter-editor)", sending.stop); // its answer would set the text

document.addEventListener("change", (event) => {
  if (isOfRows(event) && event.target.matches("[data-shapes]")) reshape();
});

document.addEventListener("submit", async (event) => {
  if (event.target !== rows()) return;
  event.preventDefault();
  stopChecking(); // its answer would bring back a row that is removed
  if (event.submitter?.name === "do" && event.submitter.value !== "run") {
    isShapeNew = true;
    return sending.now(event.submitter);
  }
  await sending.now();
  run();
});
