// Toasts: leave after ten seconds unless pointed at, focused, or an error. The newest of the others is seen, and
// the newest that can be undone, with the number of those behind them. Ctrl+Z undoes the newest.
import { bind } from "./commands.js";
import { outsideFields } from "./dialog.js";
import { onPage } from "./on.js";
import { announce, post } from "./request.js";

const STAY = 10_000;
const PLACE = "undone"; // in the session: where the page was scrolled to
const region = document.getElementById("toasts");
const waiting = new WeakMap();

function leaveLater(toast) {
  if (toast.dataset.toast === "error") return;
  clearTimeout(waiting.get(toast));
  waiting.set(toast, setTimeout(() => leave(toast), STAY));
}

function leave(toast) {
  if (toast.matches(":hover, :focus-within")) leaveLater(toast);
  else toast.remove();
}

function adopt() {
  for (const toast of region.children) if (!waiting.has(toast)) leaveLater(toast);
  const errors = region.querySelectorAll("[data-toast=error]:not(.trouble)");
  for (const toast of [...errors].slice(0, -2)) toast.remove();
  const said = [...region.children].filter((toast) => !toast.matches("[data-toast=error], .trouble"));
  const seen = new Set([said.at(-1), said.findLast((toast) => toast.querySelector("[data-undo]"))]);
  for (const toast of said) {
    toast.hidden = !seen.has(toast);
    delete toast.dataset.behind;
  }
  const behind = said.filter((toast) => toast.hidden).length;
  if (behind) said.at(-1).dataset.behind = behind;
}

/** Say something short; it is read aloud too. */
export function notify(text) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.dataset.toast = "";
  toast.append(Object.assign(document.createElement("p"), { textContent: text }));
  region.append(toast);
}

region.addEventListener("click", (event) => {
  if (event.target.closest("[data-dismiss]")) event.target.closest("[data-toast]").remove();
});
for (const kind of ["pointerout", "focusout"])
  region.addEventListener(kind, (event) => {
    const toast = event.target.closest("[data-toast]");
    if (toast) leaveLater(toast);
  });

// a grid takes over what changed; other pages are reloaded, and stay where they are
region.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.querySelector("[data-undo]")) return;
  if (!document.querySelector("[data-grid]")) {
    sessionStorage.setItem(PLACE, JSON.stringify([location.href, scrollY]));
    return;
  }
  event.preventDefault();
  undo(form);
});

async function undo(form) {
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const { status, found } = await post(form.action, new FormData(form)).finally(() => (form.ariaBusy = null));
  if (status !== 200) {
    form.submit();
    return;
  }
  const hadFocus = form.contains(document.activeElement);
  form.closest("[data-toast]").remove();
  if (hadFocus) document.querySelector('[data-grid] :is(td, th)[tabindex="0"]')?.focus({ preventScroll: true });
  announce(found);
  document.dispatchEvent(new CustomEvent("grid:changed", { detail: { keys: [] } }));
}

function besideUndo(event) {
  return outsideFields(event) && [...region.querySelectorAll("form:not([aria-busy]) [data-undo]")].at(-1);
}

bind(besideUndo, { "change.undo": (newest) => newest.click() });

onPage(() => {
  const [page, place] = JSON.parse(sessionStorage.getItem(PLACE) ?? "[]");
  sessionStorage.removeItem(PLACE);
  if (page === location.href) scrollTo(0, place);
});

new MutationObserver(adopt).observe(region, { childList: true });
adopt();
