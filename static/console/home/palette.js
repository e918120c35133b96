// The palette: a field, and below it what it finds; the arrows choose, Enter goes there.
import { bind } from "../site/commands.js";
import { get } from "../site/request.js";

const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const told = dialog.querySelector("[role=status]");
let opener;
let asking = null; // until the answer is to what the field says

export function show(from) {
  opener = from;
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
    for (const name of ["in", "table"]) if (dialog.dataset[name]) address.searchParams.set(name, dialog.dataset[name]);
    try {
      const { status, isRedirected, found } = await get(address);
      if (isRedirected || status !== 200) throw new Error(status);
      put(found.getElementById("palette-hits"));
      dialog.dataset.shown = text;
    } catch (error) {
      if (error.name !== "AbortError") location.assign(field.form.action); // signed out, or away: the page says it
      return;
    }
  } while (field.value !== text && dialog.open);
}

function put(found) {
  document.getElementById("palette-hits").replaceWith(document.adoptNode(found));
  const options = all();
  field.setAttribute("aria-expanded", String(options.length > 0));
  field.toggleAttribute("aria-controls", false);
  if (options.length) field.setAttribute("aria-controls", "palette-list");
  choose(options[0]);
  told.textContent = options.length ? told.dataset.found.replace("%s", options.length) : found.textContent.trim();
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

field.addEventListener("input", ask);

const paletteField = ({ target }) => target === field;
for (const [key, step] of Object.entries({ ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 })) bind(paletteField, { [key]: () => move(step) });

field.form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = field.value;
  // what is shown may be of what was typed before
  if (dialog.dataset.shown !== typed) await ask();
  const chosen = dialog.querySelector("[aria-selected=true]");
  if (chosen) chosen.click();
  else location.assign(`${field.form.action}?q=${encodeURIComponent(typed)}`);
});

dialog.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  if (option && option.getAttribute("aria-selected") !== "true") choose(option);
});

dialog.addEventListener("close", () => opener?.focus?.());
