// Completion in a filter: names of properties, operators, values that are stored. The server knows them.
import { onPage } from "../site/on.js";
import { json } from "../site/request.js";

const RELATIONS = ["eq", "ne", "gt", "ge", "lt", "le"];
const CONNECTIVES = ["and", "or", "not"];
const TOKEN = /(?:datetime|guid|binary|[xX])?'(?:[^']|'')*'?|[\p{L}_][\p{L}\p{N}_]*|-?\d[\w.+-]*|[(),]/gu;
const COMPLETE = /^(?:-?\d.*|.*'(?:[^']|'')*')$/u; // a number, or a literal with its end
const NAME = /^[\p{L}_][\p{L}\p{N}_]*$/u;

const answers = new Map(); // the server's answers, by address
onPage(() => answers.clear());

export function ask(address) {
  if (!answers.has(address)) {
    const answer = json(address, { isBackground: true });
    answer.catch(() => answers.delete(address));
    answers.set(address, answer);
  }
  return answers.get(address);
}

/** The source of completions for the editor; `card` gives the element whose data hold the server's addresses. */
export const completing = (card) => (context) => complete(context, card().dataset);

async function complete(context, addresses) {
  const text = context.state.sliceDoc(0, context.pos);
  const found = [...text.matchAll(TOKEN)];
  const last = found.at(-1);
  // the token at the cursor is being typed
  const isOpen = last && last.index + last[0].length === context.pos && last[0] !== "(" && last[0] !== ")" && last[0] !== ",";
  const before = (isOpen ? found.slice(0, -1) : found).map(([token]) => token);
  const typed = isOpen ? last[0] : "";
  // the next token comes after a space, not in the middle of a word
  if (!context.explicit && !typed && !/[\s(]$/.test(text)) return null;
  const from = context.pos - typed.length;
  try {
    const options = await next(before, typed, addresses, context.explicit);
    const isWanted = !context.aborted && context.view?.hasFocus !== false; // left meanwhile, they would cover the page
    return options.length && isWanted ? { from, options, filter: true, validFor: NAME } : null;
  } catch {
    return null; // without an answer nothing is offered
  }
}

async function next(before, typed, addresses, isAsked) {
  const last = before.at(-1);
  if (COMPLETE.test(typed)) return []; // as it is, which Enter runs
  if (RELATIONS.includes(last)) return values(before.at(-2), addresses);
  if (typed.startsWith("'")) return [];
  if (last === undefined || last === "(" || CONNECTIVES.includes(last)) return names(addresses);
  if (NAME.test(last) && !["true", "false"].includes(last)) return RELATIONS.map((label) => keyword(label));
  // the filter may end here, and Enter would take the first proposal
  return typed || isAsked ? ["and", "or"].map((label) => keyword(label)) : [];
}

function keyword(label) {
  return { label, type: "keyword", apply: `${label} ` };
}

async function names(addresses) {
  const { properties, functions } = await ask(addresses.known);
  return [
    ...properties.map(({ name, types, share }) => ({ label: name, detail: types, apply: `${name} `, boost: 20 + share / 100 })),
    { label: "not", apply: "not ", boost: -50 },
    ...functions.map(({ label, detail, apply }) => ({ label, detail, apply, boost: -60 })),
  ];
}

async function values(name, addresses) {
  if (!name || !NAME.test(name)) return [];
  const found = await ask(`${addresses.values}?name=${encodeURIComponent(name)}`);
  return found.values.map(({ text, detail }, at) => ({ label: text, detail, boost: 90 - at }));
}
