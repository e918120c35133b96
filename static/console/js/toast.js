// Toasts: leave after ten seconds unless pointed at, focused, or an error; three at most.
const STAY = 10_000;
const region = document.getElementById("toasts");
const waiting = new WeakMap();

function leaveLater(toast) {
  if (toast.dataset.toast === "error") return;
  clearTimeout(waiting.get(toast));
  waiting.set(toast, setTimeout(() => toast.remove(), STAY));
}

function adopt() {
  for (const toast of region.children) if (!waiting.has(toast)) leaveLater(toast);
  while (region.children.length > 3) region.firstElementChild.remove();
}

/** Say something short; it is read aloud too. */
export function say(text) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.dataset.toast = "";
  toast.append(Object.assign(document.createElement("p"), { textContent: text }));
  region.append(toast);
}

region.addEventListener("click", (event) => {
  if (event.target.closest("[data-dismiss]")) event.target.closest("[data-toast]").remove();
});
for (const kind of ["pointerover", "focusin"])
  region.addEventListener(kind, (event) => clearTimeout(waiting.get(event.target.closest("[data-toast]"))));
for (const kind of ["pointerout", "focusout"])
  region.addEventListener(kind, (event) => {
    const toast = event.target.closest("[data-toast]");
    if (toast) leaveLater(toast);
  });
new MutationObserver(adopt).observe(region, { childList: true });
adopt();
