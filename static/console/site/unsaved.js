// form[data-guard]: leaving it with unsaved changes asks once; a copy outlives a reload (drafts.js).
import { onSwap } from "./on.js";

let leaving = false;

const isBox = (field) => field.matches("[type=checkbox], [type=radio]");

/** The value of a field. */
export const stateOf = (field) => (isBox(field) ? field.checked : field.value);

/** Its value when it was drawn. */
function drawnState(field) {
  if (isBox(field)) return field.defaultChecked;
  if (field.matches("select")) return ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value;
  return field.defaultValue;
}

export const isChanged = (field) => stateOf(field) !== drawnState(field);

export const fieldsOf = (form) => [...form.elements].filter((field) => field.name && field.matches("input, select, textarea"));

export function isDirty(form) {
  if ("dirty" in form.dataset) return true;
  return fieldsOf(form).some((field) => field.type !== "hidden" && !field.disabled && isChanged(field));
}

const sent = new WeakMap(); // by form that is on its way to the server, what its fields said

/** The value of a field when its form was sent, or else when it was drawn. */
export const stateBefore = (field) => sent.get(field.form)?.get(field) ?? drawnState(field);

/** Whether something in a form was typed that is not on its way to the server. */
export function hasNews(form) {
  return sent.has(form) ? fieldsOf(form).some((field) => stateOf(field) !== stateBefore(field)) : isDirty(form);
}

/** Note that a form is sent, or that the server has not taken it; if it is sent twice, the first time applies. */
export function setOnItsWay(form, is) {
  if (is && sent.has(form)) return;
  if (is) sent.set(form, new Map(fieldsOf(form).map((field) => [field, stateOf(field)])));
  else sent.delete(form);
}

function dirtyForms() {
  return [...document.querySelectorAll("form[data-guard]")].filter(isDirty);
}

/** Whether something typed would be lost. */
export function anyDirty() {
  return dirtyForms().length > 0;
}

/** Goes on at once, or when what was typed is saved, or when the user agrees to lose it. */
export function guarded(goOn) {
  const dialog = document.getElementById("unsaved");
  if (leaving || !dialog || !anyDirty()) return goOn();
  dialog.returnValue = "stay";
  const button = saveButton(dirtyForms());
  dialog.querySelector('[value="continue"]').hidden = !button;
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "continue") return save(button, goOn);
    if (dialog.returnValue !== "leave") return;
    document.dispatchEvent(new CustomEvent("tablero:discarded"));
    goOn();
  }, { once: true });
  dialog.showModal();
}

/** The button that saves all typed text, if it is in one form, and nothing in it has to be decided or corrected first. */
function saveButton(forms) {
  if (forms.length !== 1 || document.querySelector("[data-error-summary]")) return null;
  return [...forms[0].elements].find((element) => element.matches(".primary[value=save]:enabled")) ?? null;
}

let onSaved = null; // { form, goOn } of a form that is being saved before the user goes on

function save(button, goOn) {
  onSaved = { form: button.form, goOn };
  button.click();
}

/** Go on where the user wanted to before the form was saved; returns whether there was such a wish. */
export function goOnSaved() {
  const goOn = onSaved?.goOn;
  onSaved = null;
  goOn?.();
  return Boolean(goOn);
}

// the answer took the form away: it is saved, or shown again with errors
onSwap(() => {
  if (!onSaved || onSaved.form.isConnected) return;
  if (anyDirty() || document.querySelector("[data-error-summary]")) onSaved = null;
  else goOnSaved();
});
document.addEventListener("tablero:unsent", () => (onSaved = null));

document.addEventListener(
  "click",
  (event) => {
    const link = event.target.closest?.("a[href]");
    const isPlain = link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    if (!isPlain || link.target || link.hasAttribute("download") || "look" in link.dataset || link.closest("dialog") || link.getAttribute("href").startsWith("#")) return;
    if (leaving || !anyDirty()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    guarded(() => {
      leaving = true;
      for (const form of document.querySelectorAll("form[data-guard]")) form.removeAttribute("data-guard");
      link.click();
      leaving = false;
    });
  },
  true,
);

// a form that is sent takes what was typed along; also one that deletes the entity, which can be undone
let isSent = false;

/** Say whether the page is about to be left because the server has taken what was typed, or the browser sends it. */
export function setSent(is) {
  isSent = is;
}

export function wasSent() {
  return isSent;
}

// a request whose answer takes the place of the form that it sends
const replacesForm = ({ target, request, swap }) => swap !== "none" && target?.contains?.(request.form);
document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => replacesForm(ctx) && setOnItsWay(ctx.request.form, true));
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  if (ctx.status.startsWith("error") && replacesForm(ctx)) setOnItsWay(ctx.request.form, false);
});
document.addEventListener("htmx:before:response", ({ detail }) => {
  if (detail.ctx.hx.redirect) isSent = true;
});
document.addEventListener("tablero:unsent", () => {
  isSent = false;
});
addEventListener("beforeunload", (event) => {
  if (!isSent && anyDirty()) event.preventDefault();
});
