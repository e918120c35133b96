// A filter or an expression as CodeMirror shows it, in place of its field: colours, completion, faults at their place, Enter
// runs it. It comes with the first focus, and only to the pages that have one.
import {
  Annotation, EditorState, EditorView, HighlightStyle, Prec, StreamLanguage, acceptCompletion, autocompletion, bracketMatching,
  closeCompletion, defaultKeymap, history, historyKeymap, keymap, nextDiagnostic, placeholder, setDiagnostics, syntaxHighlighting, tags,
} from "../../vendor/codemirror/6.43.15/codemirror.js";
import { pageSignal } from "../site/on.js";

const ours = Annotation.define(); // set by the page, not typed

const KINDS = [
  [/^datetime'(?:[^']|'')*'?/, "date"],
  [/^guid'(?:[^']|'')*'?/, "guid"],
  [/^(?:[xX]|binary)'(?:[^']|'')*'?/, "binary"],
  [/^'(?:[^']|'')*'?/, "string"],
  [/^(?:and|or|not)(?![\w])/, "connective"],
  [/^(?:eq|ne|gt|ge|lt|le)(?![\w])/, "relation"],
  [/^(?:true|false|null)(?![\w])/, "boolean"],
  [/^-?\d[\w.]*/, "number"],
  [/^[\p{L}_][\p{L}\p{N}_]*(?=\s*\()/u, "function"],
  [/^[\p{L}_][\p{L}\p{N}_]*/u, "property"],
];
const TAGS = {
  date: tags.unit, guid: tags.url, binary: tags.regexp, string: tags.string, connective: tags.logicOperator,
  relation: tags.compareOperator, boolean: tags.bool, number: tags.number, function: tags.macroName, property: tags.propertyName,
};
const COLOURS = {
  date: "var(--ink-date)", guid: "var(--ink-guid)", binary: "var(--ink-bin)", string: "var(--ok)", connective: "var(--text-muted)",
  relation: "var(--text-muted)", boolean: "var(--ink-bool)", number: "var(--ink-num)", function: "var(--accent)",
};

const language = StreamLanguage.define({
  token(stream) {
    if (stream.eatSpace()) return null;
    for (const [pattern, kind] of KINDS) if (stream.match(pattern)) return kind;
    stream.next();
    return null;
  },
  tokenTable: TAGS,
});
const highlight = HighlightStyle.define(Object.entries(COLOURS).map(([kind, color]) => ({ tag: TAGS[kind], color })));

const keys = (run, leave) => [
  { key: "Enter", run: () => (run(), true) },
  { key: "ArrowDown", run: (view) => Boolean(leave) && isOnLastLine(view) && (leave(), true) },
  { key: "F8", run: nextDiagnostic },
];

function isOnLastLine(view) {
  const { main } = view.state.selection;
  return view.moveVertically(main, true).head === main.head || view.coordsAtPos(main.head)?.top === view.coordsAtPos(view.state.doc.length)?.top;
}

/** A line of text stays one, whatever is pasted. */
const oneLine = EditorState.transactionFilter.of((change) => {
  if (!change.docChanged || change.newDoc.lines === 1) return change;
  const text = change.newDoc.toString().replace(/\s*\n\s*/g, " ");
  return { changes: { from: 0, to: change.startState.doc.length, insert: text }, selection: { anchor: text.length }, userEvent: "input.paste" };
});

/** Chromium keeps the look of replaced text by an inline style, which the page's policy forbids. */
const overSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    // the browser's selection: the editor may not have heard of it yet
    const selection = document.getSelection();
    const range = event.getTargetRanges()[0] ?? (selection.rangeCount ? selection.getRangeAt(0) : null);
    if (!/^(insertText|delete)/.test(event.inputType) || !range || range.collapsed || view.composing) return false;
    event.preventDefault();
    const [from, to] = [view.posAtDOM(range.startContainer, range.startOffset), view.posAtDOM(range.endContainer, range.endOffset)];
    const insert = event.data ?? "";
    const userEvent = insert ? "input.type" : "delete";
    view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent, scrollIntoView: true });
    return true;
  },
});

/** The document, but as a shadow root has no head: so its styles are adopted ones, which need no nonce of the page's policy. */
const root = new Proxy(document, {
  get: (it, name) => (name === "head" ? undefined : typeof it[name] === "function" ? it[name].bind(it) : it[name]),
  set: (it, name, value) => Reflect.set(it, name, value),
});

/**
 * Put the editor in the place of a field, which stays as a hidden one.
 *
 * The page gives the source of completions, and what to do: `run` it, `checkSoon`, and perhaps `leave` downwards. Returns
 * what sets and judges the text.
 */
export function edit(old, { complete, run, checkSoon, leave }) {
  const { selectionStart: anchor, selectionEnd: head } = old;
  const hasFocus = document.activeElement === old;
  const field = Object.assign(document.createElement("input"), { type: "hidden", id: old.id, name: old.name, value: old.value });
  const label = document.querySelector(`label[for="${old.id}"]`);
  label.id ||= `${old.id}-label`;
  const named = { "aria-labelledby": label.id, "aria-describedby": old.getAttribute("aria-describedby"), autocapitalize: "none", spellcheck: "false" };
  const view = new EditorView({
    root,
    state: EditorState.create({
      doc: field.value,
      selection: { anchor: Math.min(anchor ?? 0, field.value.length), head: Math.min(head ?? 0, field.value.length) },
      extensions: [
        history(), oneLine, language, syntaxHighlighting(highlight), bracketMatching(), EditorView.lineWrapping,
        placeholder(old.placeholder),
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: (it) => (closeCompletion(it), run(), true) }, { key: "Tab", run: acceptCompletion }])),
        autocompletion({ override: [complete], icons: false, activateOnTypingDelay: 60, interactionDelay: 0, activateOnCompletion: () => true }),
        Prec.default(keymap.of([...keys(run, leave), ...historyKeymap, ...defaultKeymap.filter(({ key }) => key !== "Mod-Enter")])),
        overSelection,
        EditorView.editorAttributes.of({ id: `${old.id}-editor`, class: "line-editor" }),
        EditorView.contentAttributes.of(() => ({ ...named, ...(field.hasAttribute("aria-invalid") && { "aria-invalid": "true" }) })),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          field.value = update.state.doc.toString();
          if (!update.transactions.some((one) => one.annotation(ours))) checkSoon();
        }),
      ],
    }),
  });
  if (old.hasAttribute("aria-invalid")) field.setAttribute("aria-invalid", "true");
  old.replaceWith(view.dom, field);
  if ("search" in old.dataset) view.contentDOM.dataset.search = "";
  label.onclick = () => view.focus();
  if (hasFocus) view.focus();
  pageSignal().addEventListener("abort", () => view.destroy());
  return handle(view);
}

/** An editor as query.js uses it. */
function handle(view) {
  return {
    isConnected: () => view.dom.isConnected,
    hasFocus: () => view.hasFocus,
    focus: () => view.focus(),
    set(text) {
      view.dispatch({ changes: difference(view.state.doc.toString(), text), annotations: ours.of(true), userEvent: "input" });
    },
    setSelectionRange: (anchor, head) => view.dispatch({ selection: { anchor, head }, scrollIntoView: true }),
    judge(isWrong, problems) {
      const end = view.state.doc.length;
      const marks = problems.map(({ from, to, message, isError }) => ({
        from: Math.min(from, end), to: Math.min(to, end), message, severity: isError ? "error" : "warning",
      }));
      view.dispatch(setDiagnostics(view.state, marks)); // it updates the attributes of the content, too
    },
  };
}

/** The one change that makes a text another, so that the cursor stays where it is. */
function difference(old, text) {
  let start = 0;
  while (start < Math.min(old.length, text.length) && old[start] === text[start]) start++;
  let end = 0;
  while (end < Math.min(old.length, text.length) - start && old.at(-1 - end) === text.at(-1 - end)) end++;
  return { from: start, to: old.length - end, insert: text.slice(start, text.length - end) };
}
