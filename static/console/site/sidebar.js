// The sidebar: beside the page, or below 900 px a drawer over it.
import { bind } from "./commands.js";
import { keepCookie, on, onPage } from "./on.js";

const narrow = matchMedia("(width < 900px)");
const button = () => document.querySelector("[data-sidebar-toggle]");
const sidebar = () => document.getElementById("sidebar");

function isOpen() {
  return narrow.matches ? isDrawerOpen() : document.documentElement.dataset.sidebar !== "closed";
}

const isDrawerOpen = () => sidebar()?.hasAttribute("data-open");

function show(open) {
  if (narrow.matches) {
    sidebar().toggleAttribute("data-open", open);
    if (open) sidebar().querySelector("a, input")?.focus();
  } else {
    document.documentElement.dataset.sidebar = open ? "open" : "closed";
    keepCookie("sidebar", document.documentElement.dataset.sidebar);
  }
  tell();
}

function tell() {
  button()?.setAttribute("aria-expanded", String(isOpen()));
}

on("click", "[data-sidebar-toggle]", () => show(!isOpen()));
narrow.addEventListener("change", () => {
  sidebar()?.removeAttribute("data-open");
  tell();
});
bind(isDrawerOpen, {
  Escape: () => {
    show(false);
    button().focus();
    return false;
  },
});
const isOutside = (element) => !sidebar().contains(element) && !button().contains(element);
document.addEventListener("pointerdown", ({ target }) => {
  if (isDrawerOpen() && isOutside(target)) show(false);
});
on("focusout", "#sidebar", (_, { relatedTarget }) => {
  if (isDrawerOpen() && relatedTarget && isOutside(relatedTarget)) show(false);
});
onPage(tell);
