// The palette: a field, and below it the commands of the page and what the server finds; the arrows choose, Enter runs or goes there.
import { bind } from "../site/commands.js";
import { get } from "../site/request.js";
import { actionsOf, fold, rank } from "./actions.js";

const PLACE = "palette"; // in the local storage
const MOST = 20; // choices that are remembered
const RECENT = 5; // used last, shown before something is typed
const LOCAL = 8; // commands, so that what is found stays visible
const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const told = dialog.querySelector("[role=status]");
let opener;
let here = []; // commands of the page: { id, text, detail, icon, caps, run }
let found = null; // the server's last answer
const icons = new Map(); // icons of commands with keys
let asking = null; // until the answer is to what the field says

/** Open it for the page below, where the element has the focus and the given commands run. */
export function show(from, runs) {
  opener = from;
  here = actionsOf(runs);
  found = null;
  draw();
  ask();
}

/** One request at a time: what is typed meanwhile is asked for next. */
function ask() {
  asking ??= keepUp().finally(() => (asking = null));
  return asking;
}

async function keepUp() {
  let text;
  do {
    text = field.value;
    const address = new URL(dialog.dataset.source, location);
    address.searchParams.set("q", text);
    if (!icons.size) address.searchParams.set("icons", "");
    for (const name of ["in", "table"]) if (dialog.dataset[name]) address.searchParams.set(name, dialog.dataset[name]);
    try {
      const { status, isRedirected, found: answer } = await get(address);
      if (isRedirected || status !== 200) throw new Error(status);
      for (const icon of answer.querySelectorAll("[data-icon-of]")) icons.set(icon.dataset.iconOf, icon.firstElementChild);
      found = answer.getElementById("palette-hits");
      draw();
      dialog.dataset.shown = text;
    } catch (error) {
      if (error.name !== "AbortError" && dialog.open) location.assign(field.form.action); // signed out, or away: the page says it
      return;
    }
  } while (field.value !== text && dialog.open);
}

/** The commands that match what is typed, the best first; before something is typed, all of them. */
function matching() {
  const words = fold(field.value).split(/\s+/).filter(Boolean);
  const used = recent();
  const at = (id) => (used.includes(id) ? used.indexOf(id) : used.length);
  const ranked = here.map((it) => ({ ...it, rank: rank(words, it) })).filter((it) => it.rank !== null);
  return ranked.sort((one, other) => one.rank - other.rank || at(one.id) - at(other.id));
}

function draw() {
  if (!found && !field.value.trim()) return; // the pages opened last come first
  const old = document.getElementById("palette-hits");
  const chosen = old.querySelector("[aria-selected=true]")?.dataset.id;
  const next = found?.cloneNode(true) ?? old.cloneNode(false);
  const commands = matching();
  const isTyped = field.value.trim() !== "";
  const near = isTyped ? commands.filter((it) => it.rank === 0).slice(0, LOCAL) : [];
  const others = isTyped ? commands.filter((it) => it.rank > 0).slice(0, Math.max(0, LOCAL - near.length)) : commands;
  const list = next.querySelector("#palette-list") ?? Object.assign(document.createElement("div"), { id: "palette-list" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", dialog.dataset.results);
  const pageOf = (href) => href.split("?")[0]; // a command of the page also has its filter
  const drop = new Set([...near, ...others].filter((it) => it.href).map((it) => pageOf(it.href)));
  const names = new Set([...near, ...others].map(({ text }) => text));
  const isHere = (link) => link.dataset.kind === "PAGE" && link.href.includes(`/t/${dialog.dataset.table}/`);
  for (const link of list.querySelectorAll("a[href]"))
    if (drop.has(link.href) || (isHere(link) && names.has(link.querySelector(".text").textContent.trim()))) link.remove();
  for (const empty of list.querySelectorAll("[role=group]:not(:has([role=option]))")) empty.remove();
  list.prepend(...groupOf("near", dialog.dataset.commands, near));
  // before something is typed, after the tables that were opened last
  const after = isTyped ? list.lastElementChild : list.querySelector("[role=group]:has([data-kind=RECENT])");
  if (after) after.after(...groupOf("here", dialog.dataset.commands, others));
  else list.prepend(...groupOf("here", dialog.dataset.commands, others));
  if (!isTyped && found) list.prepend(...usedLast(list));
  if (list.querySelector("[role=option]")) next.replaceChildren(list);
  old.replaceWith(document.adoptNode(next));
  const options = all();
  field.setAttribute("aria-expanded", String(options.length > 0));
  field.toggleAttribute("aria-controls", false);
  if (options.length) field.setAttribute("aria-controls", "palette-list");
  choose(options.find((it) => chosen && it.dataset.id === chosen) ?? options[0]);
  if (found) told.textContent = options.length ? told.dataset.found.replace("%s", options.length) : next.textContent.trim();
}

/** A group of the options used last, out of all that are shown. */
function usedLast(list) {
  const byId = new Map([...list.querySelectorAll("[role=option][data-id]")].map((it) => [it.dataset.id, it]));
  const options = recent().map((id) => byId.get(id)).filter(Boolean).slice(0, RECENT);
  const [group] = options.length ? emptyGroup("used", dialog.dataset.recent) : [];
  group?.append(...options);
  for (const empty of list.querySelectorAll("[role=group]:not(:has([role=option]))")) empty.remove();
  return group ? [group] : [];
}

function emptyGroup(name, label) {
  const group = document.createElement("div");
  group.setAttribute("role", "group");
  group.setAttribute("aria-labelledby", `palette-group-${name}`);
  const title = Object.assign(document.createElement("p"), { className: "palette-group", id: `palette-group-${name}`, textContent: label });
  title.setAttribute("role", "presentation");
  group.append(title);
  return [group];
}

function groupOf(name, label, commands) {
  if (!commands.length) return [];
  const [group] = emptyGroup(name, label);
  commands.forEach((command, at) => {
    const option = document.createElement("a");
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.tabIndex = -1;
    option.id = `palette-${name}-${at + 1}`;
    option.dataset.id = command.id;
    const icon = command.icon ?? icons.get(command.id);
    if (icon) option.append(icon.cloneNode(true));
    option.append(Object.assign(document.createElement("span"), { className: "text", textContent: command.text }));
    if (command.detail) option.append(Object.assign(document.createElement("span"), { className: "detail", textContent: command.detail }));
    if (command.caps.length) {
      const keys = Object.assign(document.createElement("span"), { className: "where" });
      keys.append(...command.caps.map((cap) => cap.cloneNode(true)));
      option.append(keys);
    }
    group.append(option);
  });
  return [group];
}

function all() {
  return [...dialog.querySelectorAll("[role=option]")];
}

function choose(option) {
  dialog.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
  field.removeAttribute("aria-activedescendant");
  if (!option) return;
  option.setAttribute("aria-selected", "true");
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function move(by) {
  const options = all();
  const at = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  if (options.length) choose(options[(at + by + options.length) % options.length]);
}

field.addEventListener("input", () => {
  draw(); // commands at once; what was found before stays until the answer
  ask();
});

dialog.addEventListener("click", ({ target }) => {
  const option = target.closest("[role=option]");
  if (!option) return;
  if (option.dataset.id) remember(option.dataset.id);
  if (option.href) return; // a link
  const { run } = here.find(({ id }) => id === option.dataset.id);
  const from = opener;
  opener = null; // the command may take the focus
  dialog.close();
  from?.focus?.();
  run();
});

const paletteField = ({ target }) => target === field;
for (const [key, step] of Object.entries({ ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 })) bind(paletteField, { [key]: () => move(step) });

field.form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = field.value;
  // the options on screen may belong to an earlier text
  if (dialog.dataset.shown !== typed) await ask();
  if (!dialog.open) return; // closed before the answer
  const chosen = dialog.querySelector("[aria-selected=true]");
  if (chosen) chosen.click();
  else location.assign(`${field.form.action}?q=${encodeURIComponent(typed)}`);
});

dialog.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  if (option && option.getAttribute("aria-selected") !== "true") choose(option);
});

dialog.addEventListener("close", () => opener?.focus?.());

// the options used last, by ids that name no table and no account; signing out clears it

function recent() {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "[]");
  } catch {
    return []; // storage is off, or not ours
  }
}

function remember(id) {
  try {
    localStorage.setItem(PLACE, JSON.stringify([id, ...recent().filter((other) => other !== id)].slice(0, MOST)));
  } catch {
    // without it, nothing comes first
  }
}
