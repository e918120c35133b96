// The sidebar: beside the page, or below 900 px a drawer over it.
import { bind } from "./commands.js";
import { keepCookie } from "./on.js";

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
    keepCookie("sidebar", document.documentElement.dataset.sidebar);
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
  const openSidebar = () => sidebar.hasAttribute("data-open");
  bind(openSidebar, {
    Escape: () => {
      show(false);
      button.focus();
      return false;
    },
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
