// What was typed into form[data-guard] and not saved outlives a reload, for the same user and in the same tab. It is
// offered, not put back by itself: data-restore names the field that has the server show it without saving. The editor of a
// cell keeps and shows its draft itself.
import { onPage, onSwap } from "./on.js";
import { load } from "./page_form.js";
import { isDirty, wasSent } from "./unsaved.js";

const { user } = document.documentElement.dataset;
const offered = new WeakSet();

function guardedForms() {
  return [...document.querySelectorAll("form[data-guard][data-restore]")];
}

function placeOf(address) {
  return `tablero.draft.${user}.${address}`;
}

function nameOf(form) {
  return placeOf(form.getAttribute("action"));
}

/** Keep the texts of a form that is about to go. */
export function keepDraft(form) {
  const fields = [...new FormData(form)].filter(([name, value]) => typeof value === "string" && name !== "csrfmiddlewaretoken");
  try {
    sessionStorage.setItem(nameOf(form), JSON.stringify(fields));
  } catch {
    // larger than a browser keeps; it asked before it left
  }
}

/** The fields that were kept of the form with this action. */
export function draftOf(address) {
  return JSON.parse(sessionStorage.getItem(placeOf(address)) ?? "[]");
}

export function forgetDraft(address) {
  sessionStorage.removeItem(placeOf(address));
}

function keepDrafts() {
  guardedForms().filter(isDirty).forEach(keepDraft);
}

function discardDrafts() {
  for (const form of guardedForms()) sessionStorage.removeItem(nameOf(form));
}

function offer(form) {
  const kept = sessionStorage.getItem(nameOf(form));
  if (!kept || offered.has(form) || isDirty(form)) return;
  offered.add(form);
  const banner = document.getElementById("draft-offer").content.firstElementChild.cloneNode(true);
  banner.addEventListener("click", (event) => {
    if (event.target.closest("[data-restore-draft]")) restore(form, JSON.parse(kept));
    else if (!event.target.closest("button")) return;
    sessionStorage.removeItem(nameOf(form));
    banner.remove();
  });
  form.before(banner);
}

function restore(form, fields) {
  const body = new FormData();
  const [name, value] = form.dataset.restore.split("=");
  for (const [field, text] of fields) body.append(field, text);
  body.set(name, value);
  body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  load(form.getAttribute("action"), body, form.closest("#drawer"));
}

document.addEventListener("submit", (event) => {
  if (event.target.matches("form[data-guard]")) sessionStorage.removeItem(nameOf(event.target));
  // no other user of this tab is to find them
  if (event.target.matches("[data-sign-out]"))
    for (const name of Object.keys(sessionStorage)) if (name.startsWith("tablero.draft.")) sessionStorage.removeItem(name);
});

const leave = () => (wasSent() ? discardDrafts() : keepDrafts());
addEventListener("pagehide", leave);
onPage((left) => left.addEventListener("abort", leave));
document.addEventListener("tablero:discarded", discardDrafts);

const offerAll = () => guardedForms().forEach(offer);
onSwap(offerAll);
offerAll();
