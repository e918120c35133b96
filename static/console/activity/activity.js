// The histogram, on which a range of time is selected, and the panel that shows what an undo would do.

const bars = (svg) => [...svg.querySelectorAll("a")];
const form = () => document.getElementById("activity-filter");
let drag = null; // {svg, from, to}: places of bars

/** Mark the bars of a range, and say what it is. */
function mark({ svg, from, to }) {
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  bars(svg).forEach((bar, place) => bar.classList.toggle("marked", place >= first && place <= last));
  const [start, end] = [bars(svg)[first], bars(svg)[last]];
  const text = (moment) => moment.replace("T", " ").slice(0, 16);
  const output = svg.closest(".histogram").querySelector("output");
  output.textContent = `${text(start.dataset.since)} – ${text(end.dataset.until).slice(11)}`;
}

/** Narrow the list to a range. */
function choose({ svg, from, to }) {
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  form().elements.since.value = bars(svg)[first].dataset.since;
  form().elements.until.value = bars(svg)[last].dataset.until;
  const more = form().querySelector("details");
  if (more) more.open = true;
  refocus = bars(svg)[last].dataset.since;
  form().requestSubmit();
}
let refocus = ""; // the bar that has the focus when the histogram is drawn anew

const barOf = (target) => target.closest?.("[data-histogram] a");
const svgOf = (bar) => bar.closest("[data-histogram]");
const placeOf = (bar) => bars(svgOf(bar)).indexOf(bar);

document.addEventListener("pointerdown", (event) => {
  const bar = event.button === 0 && barOf(event.target);
  if (!bar) return;
  event.preventDefault(); // links are dragged otherwise
  bar.focus();
  drag = { svg: svgOf(bar), from: placeOf(bar), to: placeOf(bar) };
  mark(drag);
});

document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const { left, width } = drag.svg.getBoundingClientRect();
  const number = bars(drag.svg).length;
  drag.to = Math.min(number - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * number)));
  mark(drag);
});

document.addEventListener("pointerup", () => {
  if (!drag) return;
  choose(drag);
  drag = null;
});

document.addEventListener("click", (event) => {
  if (event.detail && barOf(event.target)) event.preventDefault(); // the pointer has chosen
  if (!event.target.closest("[data-close-revert]") || !panel()?.childElementCount) return;
  event.preventDefault();
  close();
});

let range = null; // that is being selected by keys
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel()?.contains(document.activeElement)) return close();
  const bar = barOf(event.target);
  if (!bar) return;
  const all = bars(svgOf(bar));
  const place = all.indexOf(bar);
  const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: all.length - 1 }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    const to = Math.min(all.length - 1, Math.max(0, next));
    range = { svg: svgOf(bar), from: event.shiftKey ? (range?.from ?? place) : to, to };
    bar.tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
    mark(range);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(range ?? { svg: svgOf(bar), from: place, to: place });
    range = null;
  }
});

document.addEventListener("focusin", ({ target }) => {
  if (!barOf(target)) range = null;
});

// the panel

const panel = () => document.getElementById("revert");
let opener = null;

document.addEventListener("click", ({ target }) => {
  const link = target.closest("[data-revert]");
  if (link) opener = link;
});

function close() {
  panel().replaceChildren();
  if (opener?.isConnected) opener.focus();
}

document.addEventListener("htmx:after:swap", () => {
  const title = panel()?.querySelector("#revert-title");
  if (title && !panel().contains(document.activeElement)) title.focus();
  if (!refocus) return;
  const bar = document.querySelector(`[data-histogram] a[data-since="${CSS.escape(refocus)}"]`);
  if (!bar) return;
  refocus = "";
  bar.focus();
});
