// The rail: beside the page, or below 900 px a drawer over it.
const narrow = matchMedia("(width < 900px)");
const button = document.querySelector("[data-rail-toggle]");
const rail = document.getElementById("rail");

function isOpen() {
  return narrow.matches ? rail.hasAttribute("data-open") : document.documentElement.dataset.rail !== "closed";
}

function show(open) {
  if (narrow.matches) {
    rail.toggleAttribute("data-open", open);
    if (open) rail.querySelector("a, input")?.focus();
  } else {
    document.documentElement.dataset.rail = open ? "open" : "closed";
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `tablero_rail=${open ? "open" : "closed"}; path=/ui/; max-age=31536000; samesite=lax${secure}`;
  }
  tell();
}

function tell() {
  button.setAttribute("aria-expanded", String(isOpen()));
}

if (button && rail) {
  button.addEventListener("click", () => show(!isOpen()));
  narrow.addEventListener("change", () => {
    rail.removeAttribute("data-open");
    tell();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !rail.hasAttribute("data-open")) return;
    show(false);
    button.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (rail.hasAttribute("data-open") && !rail.contains(event.target) && !button.contains(event.target)) show(false);
  });
  rail.addEventListener("focusout", (event) => {
    const leaves = event.relatedTarget && !rail.contains(event.relatedTarget) && event.relatedTarget !== button;
    if (rail.hasAttribute("data-open") && leaves) show(false);
  });
  tell();
}
