// form[data-guard]: leaving it with unsaved changes asks once; a copy outlives a reload (drafts.js).
import { onSwap } from "./on.js";

let leaving = false;

export function isDirty(form) {
  if ("dirty" in form.dataset) return true;
  return [...form.elements].some((field) => {
    if (!field.name || field.type === "hidden" || field.disabled) return false;
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.type === "file") return field.files.length > 0;
    if (field.tagName === "SELECT") return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
    return "defaultValue" in field && field.value !== field.defaultValue;
  });
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

/** What saves all that was typed, if it is one form, and nothing in it has to be decided or mended first. */
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

// the answer took the form away: it is saved, or shown again with what is wrong
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

/** Say whether the page is about to be left because the server has taken what was typed. */
export function setSent(is) {
  isSent = is;
}

export function wasSent() {
  return isSent;
}

document.addEventListener("submit", () => {
  isSent = true;
});
document.addEventListener("htmx:finally:request", ({ detail }) => {
  isSent = Boolean(detail.ctx.hx?.redirect);
});
document.addEventListener("tablero:unsent", () => {
  isSent = false;
});
addEventListener("beforeunload", (event) => {
  if (!isSent && anyDirty()) event.preventDefault();
});
