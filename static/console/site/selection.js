// data-selection: a form whose check boxes tick rows; one ticks all, Shift ticks a range, and their number is told.
import { on, onSwap } from "./on.js";

let last = null;

function boxes(form) {
  return [...form.querySelectorAll('tbody input[type="checkbox"]')];
}

function tell(form) {
  const all = boxes(form);
  const count = all.filter((box) => box.checked).length;
  const page = form.querySelector("[data-select-page]");
  if (page) {
    page.checked = count > 0 && count === all.length;
    page.indeterminate = count > 0 && count < all.length;
  }
  const told = form.querySelector("[data-selected-count]");
  if (told) told.textContent = (count === 1 ? told.dataset.one : told.dataset.many).replace("{}", count);
}

on("click", '[data-selection] input[type="checkbox"]', (box, { shiftKey }) => {
  const form = box.closest("[data-selection]");
  const all = boxes(form);
  if (box.matches("[data-select-page]")) {
    for (const other of all) other.checked = box.checked;
  } else {
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
    if (shiftKey && from >= 0) for (const other of all.slice(from, to + 1)) other.checked = box.checked;
    last = box;
  }
  tell(form);
});

on("reset", "[data-selection]", (form) => setTimeout(() => tell(form)));

// a browser that goes back may have kept the ticks
const tellAll = () => document.querySelectorAll("[data-selection]").forEach(tell);
onSwap(tellAll);
addEventListener("pageshow", tellAll);
