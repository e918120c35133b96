// form[data-guard]: leaving it with unsaved changes asks once; a copy outlives a reload (drafts.js).
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

/** Whether something typed would be lost. */
export function anyDirty() {
  return [...document.querySelectorAll("form[data-guard]")].some(isDirty);
}

/** Goes on at once, or when the user agrees to lose what was typed. */
export function guarded(goOn) {
  const dialog = document.getElementById("unsaved");
  if (leaving || !dialog || !anyDirty()) return goOn();
  dialog.returnValue = "stay";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "leave") return;
    document.dispatchEvent(new CustomEvent("tablero:discarded"));
    goOn();
  }, { once: true });
  dialog.showModal();
}

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
