// Keys that work anywhere but in a field: ? shows the list, / goes to the filter, G and a letter to a page.
import { anywhere, bind } from "./commands.js";
import { isModalOpen, open } from "./dialog.js";

// after G the next key may name a page, however late it comes: keys must not ask anybody to be quick (WCAG 2.2.1)
let isLed = false;

/** The place of commands of one key, if they are on: where a key is not typed. */
export function isPlain(event) {
  return (
    !(event.ctrlKey || event.metaKey || event.altKey) &&
    (event.isChosen || document.documentElement.dataset.shortcuts !== "off") &&
    !isModalOpen() &&
    // in a cell that can be edited a character starts a new value
    !event.target.closest?.("input, textarea, select, [contenteditable], dialog, [data-cell] td[data-property]")
  );
}

function besideFilter(event) {
  return isPlain(event) && document.querySelector("[data-search]");
}

bind(isPlain, { "help.keys": () => document.getElementById("shortcuts") !== null && open("shortcuts") });
bind(besideFilter, {
  "filter.focus": (field) => {
    field.focus();
    field.select?.();
  },
});

/** Before the grid, for which a letter alone may mean something. */
function go(_, event) {
  const letter = event.key.toLowerCase();
  const page = isLed && isPlain(event) && document.querySelector(`[data-go="${CSS.escape(letter)}"]`);
  isLed = !page && letter === "g" && isPlain(event);
  if (!page) return false;
  page.click();
}

for (const kind of ["pointerdown", "blur"]) addEventListener(kind, () => (isLed = false));
bind(anywhere, { Any: go }, 2);
