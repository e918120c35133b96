// The sidebar: beside the page, or below 900 px a drawer over it.
import { bind } from "./commands.js";
import { keepCookie, newest, on, onPage } from "./on.js";
import { read, request } from "./request.js";

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

// an account with many tables lists the first ones, and a link to all: others are found by the server

const FIND_AFTER = 200; // milliseconds without a key
const list = () => document.getElementById("sidebar-tables");
const linkToAll = () => list()?.querySelector(":scope > li:not([data-filter-text]) > a");

const finding = newest(FIND_AFTER, async (signal, address, wanted) => {
  const answer = await request(address, { signal, isBackground: true, headers: { "HX-Request": "true" } });
  const found = await read(answer);
  const rest = linkToAll()?.parentElement;
  for (const link of signal.aborted || !rest ? [] : found.querySelectorAll("#tables th > .row > a.mono")) {
    const name = link.textContent;
    const isNew = name.toLowerCase().includes(wanted) && !list().querySelector(`[data-filter-text="${CSS.escape(name)}"]`);
    if (isNew) rest.before(entry(name, link.getAttribute("href")));
  }
});

function entry(name, href) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href });
  item.dataset.filterText = name;
  link.append(Object.assign(document.createElement("span"), { textContent: name }));
  item.append(link);
  return item;
}

on("input", ".sidebar-filter > input", ({ value }) => {
  const all = linkToAll();
  if (!all) return;
  const address = new URL(all.href);
  address.search = value.trim() && new URLSearchParams({ q: value.trim() });
  all.href = address;
  if (value.trim()) finding.soon(address.href, value.trim().toLowerCase());
  else finding.stop();
});
