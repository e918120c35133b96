// In the field of a comment, @ offers the people who can be mentioned; the arrows choose, Enter or Tab takes one.
import { bind } from "../site/commands.js";
import { newest, on, onPage } from "../site/on.js";
import { get } from "../site/request.js";

const WAIT = 120; // ms
let field = null;
let list = null;

/** The name that is being typed after an @, before the caret: where it begins, and its text. */
function typed() {
  const before = field.value.slice(0, field.selectionStart);
  const found = /(?:^|[^\w.+@/-])@([A-Za-z0-9._@+-]*)$/.exec(before);
  return found && { start: before.length - found[1].length, text: found[1] };
}

function close() {
  list?.remove();
  list = null;
  field?.removeAttribute("aria-activedescendant");
  field?.removeAttribute("aria-controls");
}

const asking = newest(WAIT, async (signal) => {
  const at = field && typed();
  if (!at) return close();
  const address = new URL(field.dataset.mentions, location);
  address.searchParams.set("q", at.text);
  const { status, found } = await get(address, signal).catch(() => ({}));
  if (status === 200 && asking.isNewest(signal) && typed()?.text === at.text) show(found.querySelector("[role=listbox]"));
});

function show(found) {
  close();
  if (!found?.children.length) return;
  list = document.adoptNode(found);
  list.className = "mention-list";
  list.id = "mention-list";
  [...list.children].forEach((option, at) => (option.id = `mention-${at}`));
  (field.closest("dialog[open], #drawer") ?? document.body).append(list);
  const box = field.getBoundingClientRect();
  list.style.setProperty("left", `${Math.min(box.left, innerWidth - list.offsetWidth - 8)}px`);
  list.style.setProperty("top", `${Math.min(box.bottom + 4, innerHeight - list.offsetHeight - 8)}px`);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  choose(list.firstElementChild);
}

function choose(option) {
  for (const each of list.children) each.setAttribute("aria-selected", String(each === option));
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function move(step) {
  const options = [...list.children];
  const at = options.findIndex((option) => option.ariaSelected === "true");
  choose(options[(at + step + options.length) % options.length]);
}

function take(option = list.querySelector("[aria-selected=true]")) {
  const at = typed();
  if (!at) return close();
  field.setRangeText(`${option.dataset.mention} `, at.start, field.selectionStart, "end");
  close();
  field.focus();
}

onPage(() => {
  close();
  field = null;
});

on("input", "[data-mentions]", (element) => {
  field = element;
  if (typed()) asking.soon();
  else {
    asking.stop();
    close();
  }
});
on("focusout", "[data-mentions]", () => setTimeout(() => document.activeElement !== field && close()));
on("pointerdown", "[data-mention]", (option, event) => {
  event.preventDefault();
  take(option);
});

const mentionList = ({ target }) => list && target === field;
bind(mentionList, { ArrowDown: () => move(1), ArrowUp: () => move(-1), "Enter Tab": () => take(), Escape: () => close() }, 1);
const commentField = ({ target }) => target.matches?.("[data-mentions]");
bind(commentField, { "Mod+Enter": (_found, { target }) => target.form.requestSubmit() });
