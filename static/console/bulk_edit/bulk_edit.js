// The form of a bulk edit: expressions get an editor with completion and marks, and what changes its operations asks for
// a preview. Rules about operations are the server's.
import { bind } from "../site/commands.js";
import { onPage, onSwap } from "../site/on.js";
import { ask } from "../queries/completion.js";

const WORD = /[\p{L}_][\p{L}\p{N}_]*$/u;
const form = () => document.getElementById("bulk-edit");
const editors = new Map(); // by the names of their fields

/** Names of properties and functions, and where an expression begins with a text, stored values of the property. */
const completing = (field) => async (context) => {
  const before = context.state.sliceDoc(0, context.pos);
  const typed = before.match(WORD)?.[0] ?? "";
  const isInText = before.split("'").length % 2 === 0;
  const isFirst = before === "" || (isInText && before.lastIndexOf("'") === 0);
  if (isInText ? !isFirst : !typed && !context.explicit) return null;
  const options = isFirst ? await values(field) : [];
  if (!isInText) options.push(...(await names()));
  if (!options.length || context.aborted) return null;
  return isInText ? { from: 0, options } : { from: context.pos - typed.length, options, validFor: WORD };
};

async function names() {
  const { properties } = await ask(form().dataset.known).catch(() => ({ properties: [] }));
  const functions = form().dataset.functions.split("\n").map((usage) => {
    const name = usage.split("(")[0];
    return { label: name, detail: usage, apply: usage.endsWith("()") ? usage : `${name}(`, boost: -1 };
  });
  return [...properties.map(({ name, types, share }) => ({ label: name, detail: types, boost: share / 100 })), ...functions];
}

async function values(field) {
  const name = field.endsWith("-expression") && fieldOf(field.replace("expression", "property")).value;
  if (!name) return [];
  const found = await ask(`${form().dataset.values}?name=${encodeURIComponent(name)}`).catch(() => ({ values: [] }));
  return found.values.map(({ text, detail }, at) => ({ label: text, detail, boost: 90 - at }));
}

function changed(element) {
  element.dispatchEvent(new Event("input", { bubbles: true }));
}

const fieldOf = (name) => form().elements.namedItem(name);

document.addEventListener("focusin", async ({ target }) => {
  if (!target.matches?.("#bulk-edit [data-expression]")) return;
  const { edit } = await import("../queries/editor.js");
  if (!target.isConnected) return;
  const { name } = target;
  const checkSoon = () => changed(fieldOf(name));
  editors.set(name, edit(target, { complete: completing(name), run: checkSoon, checkSoon }));
  judge();
});

/** Show the server's findings about each operation where its text is. */
function judge() {
  for (const note of document.querySelectorAll("#operations [id$='-note']")) {
    const { problem, from, to } = note.dataset;
    for (const field of note.closest("li").querySelectorAll("[name]")) {
      const isWrong = field.name === problem;
      if (isWrong) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
      const editor = editors.get(field.name);
      if (!editor?.isConnected()) continue;
      const isMarked = isWrong && from !== undefined;
      editor.judge(isWrong, isMarked ? [{ from: Number(from), to: Number(to), message: note.textContent.trim(), isError: true }] : []);
    }
  }
}

let arranged;
onPage(() => {
  editors.clear();
  arranged = document.getElementById("operations")?.firstElementChild;
});

onSwap(() => {
  const list = document.getElementById("operations");
  if (!list) return;
  // moved, added or removed: what the server drew takes the place of the editors
  if (list.firstElementChild !== arranged) {
    arranged = list.firstElementChild;
    changed(list);
  }
  judge();
});

// An answer that adds, moves or removes operations lacks what was typed or arranged since it was asked for: ask again.

const written = () => new URLSearchParams(new FormData(form())).toString();
const sent = new WeakMap(); // by request

document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
  if (ctx.target?.id === "operations") sent.set(ctx, written());
});

document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  if (!sent.has(ctx) || sent.get(ctx) === written()) return;
  event.preventDefault();
  document.getElementById(ctx.sourceElement.id)?.click();
});

const operationAt = ({ target }) => target.closest?.("#operations > li");
const press = (selector) => (operation) => operation.querySelector(selector).click();

bind(operationAt, { "operation.up": press("[data-move-up]"), "operation.down": press("[data-move-down]") }, 1);
