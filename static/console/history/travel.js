// The histogram of a table of the past: a drag selects the range to undo, or moves the handle to another time.
import { on, onPage, onSwap } from "../site/on.js";

const KEY = "travel-marks";
const bars = (svg) => [...svg.querySelectorAll("a")];
let drag = null; // {svg, from, to, handle, moved}

function placeAt(svg, x) {
  const { left, width } = svg.getBoundingClientRect();
  const number = bars(svg).length;
  return Math.min(number - 1, Math.max(0, Math.floor(((x - left) / width) * number)));
}

/** The handle, if the pointer is on it. */
function handleAt(svg, x) {
  const handle = svg.querySelector("[data-handle]");
  const { left, width } = svg.getBoundingClientRect();
  const at = left + (Number(handle?.dataset.handle) / svg.viewBox.baseVal.width) * width;
  return Math.abs(at - x) < 9 ? handle : null;
}

function mark({ svg, from, to }) {
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  bars(svg).forEach((bar, place) => bar.classList.toggle("marked", place >= first && place <= last));
  const fields = document.querySelector(".travel-range")?.elements;
  if (!fields) return;
  fields.since.value = bars(svg)[first].dataset.since;
  fields.until.value = bars(svg)[last].dataset.until;
}

on("pointerdown", "[data-travel]", (svg, event) => {
  if (event.button !== 0) return;
  const place = placeAt(svg, event.clientX);
  drag = { svg, from: place, to: place, handle: handleAt(svg, event.clientX), moved: false };
});

document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const to = placeAt(drag.svg, event.clientX);
  drag.moved ||= to !== drag.from;
  if (!drag.moved) return;
  drag.to = to;
  if (!drag.handle) return mark(drag);
  for (const line of drag.handle.children) for (const end of ["x1", "x2"]) line.setAttribute(end, (to + 1) * 10);
});

document.addEventListener("pointerup", () => {
  if (drag?.moved && drag.handle) location.assign(bars(drag.svg)[drag.to].href.baseVal);
  // the click that follows is none on a bar
  setTimeout(() => (drag = null));
});
document.addEventListener("pointercancel", () => (drag = null));
on("dragstart", "[data-travel]", (_, event) => event.preventDefault());
on("click", "[data-travel] a", (_, event) => drag?.moved && event.preventDefault());

// whether differences are marked, on all pages of this visit

on("change", "[data-marks]", ({ checked }) => sessionStorage.setItem(KEY, checked));

function restoreMarks() {
  const box = document.querySelector("[data-marks]");
  if (box) box.checked = sessionStorage.getItem(KEY) !== "false";
}

onPage(() => {
  drag = null;
  restoreMarks();
});
onSwap(restoreMarks);
