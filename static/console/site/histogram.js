// [data-histogram]: bars over time, on which a range is selected by dragging or by keys. The form that data-form of the
// .histogram around it names is sent with `since` and `until`. The functions that are exported are for other histograms.
import { bind } from "./commands.js";
import { onPage, onSwap } from "./on.js";

export const bars = (svg) => [...svg.querySelectorAll("[data-since]")];
const formOf = (part) => document.getElementById(part.closest(".histogram").dataset.form);
const svgOf = (target) => target.closest?.("[data-histogram]");
let drag = null; // {svg, from, to}: places of bars
let refocus = false; // whether the histogram that is drawn next gets the focus

/** Mark the bars of a range; returns its first and its last one. */
export function markRange({ svg, from, to }) {
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  const all = bars(svg);
  all.forEach((bar, place) => bar.classList.toggle("marked", place >= first && place <= last));
  return [all[first].dataset, all[last].dataset];
}

/** Mark the bars of a range, and say what it is. */
function mark(range) {
  const { svg, to } = range;
  const [first, last] = markRange(range);
  const text = (moment) => moment.replace("T", " ").slice(0, 16);
  const number = first === last ? `: ${first.number}` : "";
  const said = `${text(first.since)} – ${text(last.until)}${number}`;
  svg.closest(".histogram").querySelector("output").textContent = said;
  svg.setAttribute("aria-valuenow", to + 1);
  svg.setAttribute("aria-valuetext", said);
}

/** Narrow the list to a range. */
function choose(range) {
  const [first, last] = markRange(range);
  const form = formOf(range.svg);
  form.elements.since.value = first.since;
  form.elements.until.value = last.until;
  const more = form.querySelector("details");
  if (more) more.open = true;
  refocus = document.activeElement === range.svg;
  form.requestSubmit();
}

export function placeAt(svg, x) {
  const { left, width } = svg.getBoundingClientRect();
  const number = bars(svg).length;
  return Math.min(number - 1, Math.max(0, Math.floor(((x - left) / width) * number)));
}

document.addEventListener("pointerdown", (event) => {
  const svg = event.button === 0 && svgOf(event.target);
  if (!svg) return;
  const place = placeAt(svg, event.clientX);
  drag = { svg, from: place, to: place };
  mark(drag);
});

document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  drag.to = placeAt(drag.svg, event.clientX);
  mark(drag);
});

document.addEventListener("pointerup", () => {
  if (drag) choose(drag);
  drag = null;
});
document.addEventListener("pointercancel", () => (drag = null));

let range = null; // that is being selected by keys

function step(svg, { key, shiftKey }) {
  const last = bars(svg).length - 1;
  const place = placeOf(svg);
  const to = { ArrowLeft: Math.max(0, place - 1), ArrowRight: Math.min(last, place + 1), Home: 0, End: last }[key];
  range = { svg, from: shiftKey ? (range?.from ?? place) : to, to };
  mark(range);
}

function chooseRange(svg) {
  choose(range ?? { svg, from: placeOf(svg), to: placeOf(svg) });
  range = null;
}

const placeOf = (svg) => Number(svg.getAttribute("aria-valuenow")) - 1;
const histogram = ({ target }) => svgOf(target);
const MOVES = "ArrowLeft ArrowRight Home End Shift+ArrowLeft Shift+ArrowRight Shift+Home Shift+End";
bind(histogram, { [MOVES]: step, "Enter Space": chooseRange });

document.addEventListener("focusout", ({ target }) => {
  if (svgOf(target)) range = null;
});

onPage(() => {
  drag = range = null;
  refocus = false;
});

onSwap(() => {
  const svg = refocus && document.querySelector("[data-histogram]");
  if (!svg) return;
  refocus = false;
  svg.focus();
});
