// The sidebar: beside the page, or below 900 px a drawer over it.
const narrow = matchMedia("(width < 900px)");
const button = document.querySelector("[data-sidebar-toggle]");
const sidebar = document.getElementById("sidebar");

function isOpen() {
  return narrow.matches ? sidebar.hasAttribute("data-open") : document.documentElement.dataset.sidebar !== "closed";
}

function show(open) {
  if (narrow.matches) {
    sidebar.toggleAttribute("data-open", open);
    if (open) sidebar.querySelector("a, input")?.focus();
  } else {
    document.documentElement.dataset.sidebar = open ? "open" : "closed";
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `tablero_sidebar=${open ? "open" : "closed"}; path=/ui/; max-age=31536000; samesite=lax${secure}`;
  }
  tell();
}

function tell() {
  button.setAttribute("aria-expanded", String(isOpen()));
}

if (button && sidebar) {
  button.addEventListener("click", () => show(!isOpen()));
  narrow.addEventListener("change", () => {
    sidebar.removeAttribute("data-open");
    tell();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !sidebar.hasAttribute("data-open")) return;
    show(false);
    button.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (sidebar.hasAttribute("data-open") && !sidebar.contains(event.target) && !button.contains(event.target)) show(false);
  });
  sidebar.addEventListener("focusout", (event) => {
    const leaves = event.relatedTarget && !sidebar.contains(event.relatedTarget) && event.relatedTarget !== button;
    if (sidebar.hasAttribute("data-open") && leaves) show(false);
  });
  tell();
}
