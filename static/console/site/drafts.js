// Text typed into form[data-guard] and not saved outlives a reload, for the same user and in the same tab. It is
// offered, not put back by itself: data-restore names the field that has the server show it without saving. The editor of a
// cell keeps and shows its draft itself.
import { onPage, onSwap } from "./on.js";
import { load } from "./page_form.js";
import { fieldsOf, hasNews, isDirty, stateBefore, stateOf, wasSent } from "./unsaved.js";

const { user } = document.documentElement.dataset;
const offered = new WeakSet();
const discarded = new WeakSet();

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

function discardDrafts() {
  for (const form of guardedForms()) {
    discarded.add(form);
    sessionStorage.removeItem(nameOf(form));
  }
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

// text typed since a form was sent is not in the answer that takes its place

let replaced = []; // forms

document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
  const part = typeof ctx.target === "string" ? document.querySelector(ctx.target) : ctx.target; // the server may name another
  const forms = ctx.swap === "none" ? [] : (part?.querySelectorAll("form[data-guard]") ?? []);
  replaced.push(...[...forms].filter((form) => hasNews(form) && !discarded.has(form)));
  replaced.filter((form) => "restore" in form.dataset).forEach(keepDraft);
});

// before others look what is not saved
document.addEventListener("htmx:after:swap", putBackAll, true);

function putBackAll() {
  for (const form of replaced) {
    const next = document.querySelector(`form[data-guard][action="${CSS.escape(form.getAttribute("action"))}"]`);
    if (next && next !== form && putBack(form, next)) forgetDraft(form.getAttribute("action"));
  }
  replaced = [];
}

/** Into the same fields, if the rest of the form is as it was; returns whether it is. */
function putBack(form, next) {
  const fields = fieldsOf(form).filter(({ type, name }) => type !== "hidden" || /\d/.test(name)); // others are tokens
  const pairs = fields.map((field) => [field, next.elements.namedItem(field.name)]);
  if (!pairs.every(([field, it]) => it?.name && stateOf(it) === stateBefore(field))) return false;
  const changed = pairs.filter(([field]) => stateOf(field) !== stateBefore(field));
  if (changed.some(([{ type }, it]) => type === "file" || it.type === "hidden")) return false;
  for (const [field, it] of changed) {
    if (it.matches("[type=checkbox], [type=radio]")) it.checked = field.checked;
    else it.value = field.value;
    if (it === document.activeElement && it.matches("[type=text], textarea")) it.setSelectionRange(field.selectionStart, field.selectionEnd);
    it.dispatchEvent(new Event("input", { bubbles: true }));
  }
  return true;
}

function leave() {
  for (const form of guardedForms())
    if (wasSent() && !hasNews(form)) sessionStorage.removeItem(nameOf(form));
    else if (isDirty(form)) keepDraft(form);
}
addEventListener("pagehide", leave);
onPage((left) => left.addEventListener("abort", leave));
document.addEventListener("tablero:discarded", discardDrafts);

const offerAll = () => guardedForms().forEach(offer);
onSwap(offerAll);
offerAll();
