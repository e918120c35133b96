// Proposals below a field of the builder: names of properties, stored values. As in the editor, the first that fits what is
// typed is selected, Enter and Tab take it, Escape closes the list. Nothing typed selects nothing, so that Tab goes on.
import { bind } from "../site/commands.js";
import { on } from "../site/on.js";
import { ask } from "./completion.js";
import { card } from "./query.js";

const MOST = 12;
let field = null; // the field whose proposals are shown
let list = null;
let selected = -1;

const isOf = (element) => element?.matches?.('#query-builder input[type="text"]:is([name$=":property"], [name$=":value"])');

async function find(it) {
  const isName = it.name.endsWith(":property");
  const typed = it.value.trim().toLowerCase();
  if (isName) {
    const { properties } = await ask(card().dataset.known);
    return fitting(properties.map(({ name, types }) => ({ text: name, detail: types })), typed);
  }
  const name = it.closest(".clause").querySelector('[name$=":property"]').value.trim();
  const type = it.closest(".clause").querySelector(".type-choice")?.value;
  if (!name || (typed && type !== "Edm.String")) return [];
  const { values } = await ask(`${card().dataset.values}?name=${encodeURIComponent(name)}`);
  return fitting(values.filter(({ value }) => value).map(({ value, detail }) => ({ text: value, detail })), typed);
}

/** Texts that begin as typed, then texts that contain it; nothing if it is one of them already. */
function fitting(all, typed) {
  const texts = all.map((it) => ({ ...it, at: it.text.toLowerCase().indexOf(typed) })).filter(({ at }) => at >= 0);
  if (texts.some(({ text }) => text.toLowerCase() === typed)) return [];
  return texts.sort((one, other) => Math.sign(one.at) - Math.sign(other.at)).slice(0, MOST);
}

async function open(it) {
  let found = [];
  try {
    found = await find(it);
  } catch {
    // without an answer nothing is proposed
  }
  if (document.activeElement !== it) return;
  if (!found.length) return close();
  close();
  field = it;
  list = Object.assign(document.createElement("ul"), { id: "query-proposals", className: "proposals", popover: "manual", role: "listbox" });
  list.ariaLabel = it.ariaLabel;
  list.append(...found.map(draw));
  card().append(list);
  list.showPopover();
  const box = it.getBoundingClientRect();
  list.style.setProperty("left", `${Math.min(box.left, innerWidth - list.offsetWidth - 8)}px`);
  const isAbove = box.bottom + list.offsetHeight + 4 > innerHeight && box.top > list.offsetHeight;
  list.style.setProperty("top", `${isAbove ? box.top - list.offsetHeight - 2 : box.bottom + 2}px`);
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "true"], ["aria-controls", list.id], ["aria-autocomplete", "list"]])
    it.setAttribute(name, value);
  select(it.value.trim() ? 0 : -1);
}

function draw({ text, detail }, at) {
  const option = Object.assign(document.createElement("li"), { id: `proposal-${at}`, role: "option" });
  option.dataset.text = text;
  const [label, note] = [document.createElement("span"), document.createElement("small")];
  label.textContent = text;
  note.textContent = detail;
  option.append(label, note);
  return option;
}

function select(at) {
  selected = at;
  [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
  if (at < 0) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", list.children[at].id);
  list.children[at].scrollIntoView({ block: "nearest" });
}

function close() {
  if (!list) return;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
  list.remove();
  list = field = null;
}

function take(option) {
  const it = field;
  it.value = option.dataset.text;
  close();
  it.dispatchEvent(new Event("input", { bubbles: true }));
  if (it.matches("[data-shapes]")) it.dispatchEvent(new Event("change", { bubbles: true }));
}

document.addEventListener("focusin", (event) => {
  if (!isOf(event.target)) return;
  event.target.removeAttribute("list"); // the browser's own proposals
  open(event.target);
});
document.addEventListener("input", (event) => event.isTrusted && isOf(event.target) && open(event.target));
document.addEventListener("focusout", close);

const proposedTo = ({ target }) => list && target === field;
const last = () => list.children.length - 1;

bind(
  proposedTo,
  {
    ArrowDown: () => select(selected === last() ? 0 : selected + 1),
    ArrowUp: () => select(selected <= 0 ? last() : selected - 1),
    Escape: close,
    "Enter Tab Alt+Enter": () => selected >= 0 && take(list.children[selected]),
  },
  1,
);

on("pointerdown", "#query-proposals > li", (option, event) => {
  event.preventDefault(); // the focus stays
  take(option);
});
