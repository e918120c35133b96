// All keys of the console. Each module binds commands, or keys that have no name, in a place; for a key, the first command of
// its place that takes it runs. The names and keys of commands are the server's, and are in the help sheet of each page. A test
// reads the list, so that no key means two things in one place.

/** { key, place, run, rank, name }, in the order in which they are asked. */
export const commands = [];

/** The keys of a command, from the help sheet; none on pages without it. */
export function keysOf(name) {
  return document.querySelector(`#shortcuts [data-command="${name}"]`)?.dataset.keys ?? "";
}

/**
 * Bind commands: `bindings` has their names, or lists of keys, and functions that take the target that `place` finds and the event.
 *
 * A place is a function with a name: it returns the target of an event there, or nothing. A command that returns false leaves
 * the key to others. Commands of a higher rank are asked first; above 0 also before fields hear the key.
 */
export function bind(place, bindings, rank = 0) {
  for (const [given, run] of Object.entries(bindings)) {
    const name = given.includes(".") ? given : null;
    const keys = name ? keysOf(name) : given;
    for (const key of keys.split(" ").filter(Boolean)) commands.push({ key, place, run, rank, name });
  }
  commands.sort((one, other) => other.rank - one.rank);
}

/** The function that runs each command that works at an element, by its name, for the palette, which opens afterwards. */
export function commandsAt(target) {
  const found = new Map();
  for (const { key, place, run, name } of commands) {
    if (!name || found.has(name)) continue;
    const event = { target, key: key.split("+").at(-1), isChosen: true, preventDefault() {}, stopPropagation() {} };
    if (place(event)) found.set(name, () => run(place(event), event));
  }
  return found;
}

/** The place of commands that work wherever the focus is. */
export const anywhere = () => true;

/** The names of a key: with Ctrl or ⌘ as Mod; any character is also a Character, and any key is Any. */
function namesOf(event) {
  const { altKey, shiftKey } = event;
  const isMod = event.ctrlKey || event.metaKey;
  // where Alt writes another character, as on a Mac, the place of the key counts
  const letter = /^[a-z]$/i.test(event.key) ? event.key : altKey && /^Key[A-Z]$/.test(event.code) ? event.code.at(-1) : null;
  const isTyped = event.key.length === 1 && event.key !== " " && !altKey && !isMod;
  const name = letter?.toUpperCase() ?? (event.key === " " ? "Space" : event.key);
  if (name === "Escape") return [name, "Any"];
  const modifiers = [altKey && "Alt", isMod && "Mod", shiftKey && !isTyped && "Shift"].filter(Boolean);
  return [[...modifiers, name].join("+"), isTyped && "Character", "Any"];
}

function dispatch(event, isEarly) {
  if (event.isComposing || event.defaultPrevented) return; // it is the input method's, or a field's own
  const names = namesOf(event);
  for (const command of commands) {
    if (command.rank > 0 !== isEarly || !names.includes(command.key)) continue;
    const found = command.place(event);
    if (!found || command.run(found, event) === false) continue;
    event.preventDefault();
    event.stopPropagation();
    return;
  }
}

for (const capture of [true, false]) addEventListener("keydown", (event) => dispatch(event, capture), { capture });
