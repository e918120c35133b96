// The histogram of a table of the past: a drag selects the range to undo, or moves the handle to another time.
import { bars, markRange, placeAt } from "../site/histogram.js";
import { on, onPage, onSwap } from "../site/on.js";

const KEY = "travel-marks";
let drag = null; // {svg, from, to, handle, moved}

/** The handle, if the pointer is on it. */
function handleAt(svg, x) {
  const handle = svg.querySelector("[data-handle]");
  const { left, width } = svg.getBoundingClientRect();
  const at = left + (Number(handle?.dataset.handle) / svg.viewBox.baseVal.width) * width;
  return Math.abs(at - x) < 9 ? handle : null;
}

function mark(range) {
  const [first, last] = markRange(range);
  const fields = document.querySelector(".travel-range")?.elements;
  if (!fields) return;
  fields.since.value = first.since;
  fields.until.value = last.until;
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
