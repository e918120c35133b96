// The editor of a cell: Enter, F2 or a double click opens it in place, any character does too and replaces the value.
// The keyboard belongs to what has the focus: a field takes it at once, and the editor takes the field's place when it comes,
// without taking the focus from anything else.
import { bind } from "../site/commands.js";
import { newest, on, onPage, onSubmit, onSwap } from "../site/on.js";
import { announce, explain, get, post, postInBackground, recovery } from "../site/request.js";
import { cellOf, enter, headOf } from "../grid/grid.js";
import { addressOf, currentCell, describeRow, renew, then } from "./cell_row.js";
import { handOver, ready, waitingForm } from "./cell_field.js";
import { place } from "./cell_place.js";
import { listen } from "./cell_tools.js";
import { listen as listenToInputMethods } from "./composing.js";
import { find, keep } from "./staged.js";
import { draftOf, forgetDraft, keepDraft } from "../site/drafts.js";
import { notify } from "../site/toast.js";
import "./deletion.js";
import "./paste.js";
import "./fill.js";

const WAIT = 250; // ms after the last key, before a text is checked
const ARROWS = "ArrowUp ArrowDown ArrowLeft ArrowRight";
const LEFT = "Left"; // the ending of a field beside which something was clicked
// By dialog. { dialog, cell, first: the state it opened with, isReplacing: the value was replaced, so that arrows move on }
// Before the editor comes also { field, isAdding: what is typed is added to the value, ending: the key that ended the typing,
// draft: the fields of an editor of this cell that a reload took away }.
// A second one may begin while the first is saved; it waits for that one's `work`.
const editors = new Map();

const editorOf = (element) => editors.get(element.closest?.("dialog"));
const isOpen = (editor) => editors.has(editor.dialog);
const isEmpty = ({ field, draft }) => !field.value && !draft;

function editable(target) {
  const cell = target.closest?.("[data-grid][data-cell] td[data-property]");
  return cell && !target.closest("a, button, input, dialog") ? cell : null;
}

/** `typed` replaces the value; without it, what is typed is added. */
function edit(cell, typed, { isPasted = false, draft = null } = {}) {
  const present = [...editors.values()].find((editor) => editor.cell === cell);
  if (present) return present.dialog.querySelector(".cell-value")?.focus();
  const editor = begin(cell, typed);
  Object.assign(editor, { draft, isReplacing: typed !== undefined && !isPasted });
  ask(editor);
}

function begin(cell, typed) {
  const dialog = document.createElement("dialog");
  const form = waitingForm(cell, cell.closest("[data-grid]").dataset.cell, typed);
  const field = form.elements.value;
  const checking = newest(WAIT, (signal, form) => check(form, signal));
  const editor = { dialog, cell, field, checking, first: null, isAdding: typed === undefined, ending: null };
  editors.set(dialog, editor);
  cell.parentElement.dataset.editing = "";
  dialog.className = "cell-layer";
  dialog.dataset.waiting = editor.isAdding ? "adding" : "";
  dialog.setAttribute("aria-label", cell.dataset.property);
  dialog.append(form);
  document.body.append(dialog);
  dialog.show();
  follow(editor);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  field.addEventListener("input", () => follow(editor));
  // a window that loses the focus keeps it in the field
  field.addEventListener("focusout", () => document.activeElement !== field && editor.ending !== LEFT && goOnTyping(editor));
  return editor;
}

/** Get the editor of a cell, once those before it are done: they may change the same row. */
function ask(editor) {
  const others = [...editors.values()].filter((other) => other !== editor).map(({ work }) => work);
  editor.asking?.abort();
  offerToolsOf(editor, false);
  const { signal } = (editor.asking = new AbortController());
  editor.work = Promise.allSettled(others).then(() => open(editor, signal));
}

async function open(editor, signal) {
  editor.dialog.ariaBusy = "true";
  try {
    editor.cell = currentCell(editor.cell);
    const { status, found } = await get(addressOf(editor.cell), signal);
    const form = found.getElementById("cell-editor");
    if (signal.aborted) return;
    if (status !== 200 || !form) return stay(editor, found.querySelector("h1")?.textContent);
    editor.first = state(form);
    const shown = await restored(editor, form);
    await ready(editor.field);
    if (!signal.aborted) await present(editor, shown);
  } catch (error) {
    if (!signal.aborted) stay(editor);
    if (error.name !== "AbortError") throw error;
  }
}

/** Without an editor, what was typed stays in its field, and Enter asks again. */
function stay(editor, reason) {
  if (isEmpty(editor)) return close(editor, reason);
  editor.dialog.ariaBusy = null;
  editor.asking.abort();
  goOnTyping(editor);
  offerToolsOf(editor, true);
  if (reason) notify(reason);
}

function offerToolsOf(editor, isOffered) {
  editor.dialog.querySelector(".cell-tools").hidden = !isOffered;
  follow(editor);
}

/** The key that ended the typing counts no more: it was pressed before something came between. */
function goOnTyping(editor) {
  editor.ending = null;
  if (editor.field) editor.field.readOnly = false;
}

/** The form with a staged value, or with the draft that a reload took away. */
async function restored(editor, form) {
  const staged = find(editor.cell);
  const fields = editor.draft ?? (staged && !staged.removed ? { type: staged.type, form: staged.form, value: staged.text } : null);
  if (!fields || !editor.isAdding) return form;
  return (await retyped(form, { ...fields, from: fields.type, from_form: fields.form ?? "" })) ?? form;
}

/** The editor as the server draws it for other fields; null if it does not. */
async function retyped(form, fields = {}) {
  const body = new FormData(form);
  if ("from" in fields) body.delete("value");
  for (const [name, value] of Object.entries({ ...fields, retype: "1" })) body.set(name, value);
  const { status, found } = await post(form.dataset.check, body);
  return status === 200 ? found.getElementById("cell-editor") : null;
}

/** The editor in place of its field. */
function present(editor, form) {
  const { field, ending, isAdding } = editor;
  const isHere = hasKeyboard(editor);
  const isLarge = form.dataset.size === "large";
  // nothing was typed, and something else is done by now; or a dialog would take the keyboard
  if (!isHere && (isLarge || isEmpty(editor))) return stay(editor);
  editor.cell = currentCell(editor.cell);
  editor.cell.parentElement.dataset.editing = "";
  editor.isStale = form.elements.etag.value !== editor.cell.parentElement.dataset.etag;
  if (field.value || !isAdding) delete form.dataset.untouched;
  delete editor.dialog.dataset.waiting; // the editor is placed as wide as it needs
  show(editor, form, { isTyped: field.value !== "" || !isAdding });
  editor.field = editor.ending = null;
  editor.dialog.ariaBusy = null;
  const { value } = form.elements;
  if (value.type !== "checkbox" && (field.value || !isAdding)) {
    handOver(field, value, isAdding);
    checkSoon(form);
  }
  if (ending && !isLarge) return finishLine(editor, form, then(ending));
}

/** Whether the keys go to this editor, or nowhere. */
function hasKeyboard({ dialog, cell, next }) {
  const at = document.activeElement;
  return at === document.body || at === cell || at === next || dialog.contains(at);
}

/**
 * Put a form into the editor: in place over its cell, or as a dialog when the value is long. A conflict takes the keyboard,
 * unless a text is being typed: the rest of the word would be lost.
 */
function show(editor, form, { isTyped = false } = {}) {
  const { dialog } = editor;
  const isHere = hasKeyboard(editor);
  const isLarge = form.dataset.size === "large";
  dialog.className = isLarge ? "dialog cell-dialog" : "cell-layer";
  dialog.setAttribute("aria-label", form.getAttribute("aria-label"));
  dialog.replaceChildren(document.adoptNode(form));
  if (dialog.matches(":modal") !== isLarge) {
    dialog.close();
    if (isLarge) dialog.showModal();
    else dialog.show();
  }
  const field = form.elements.value;
  const conflict = form.querySelector("#cell-conflict-title");
  if (!isLarge) follow(editor);
  if (isHere || isLarge) (isTyped && field.type !== "checkbox" ? field : (conflict ?? field)).focus();
  if (!conflict && field.type !== "checkbox") field.setSelectionRange(isLarge ? 0 : field.value.length, isLarge ? 0 : field.value.length);
}

function state(form) {
  const { value, type } = form.elements;
  return JSON.stringify([value.type === "checkbox" ? value.checked : value.value, type.value, form.elements.form?.value]);
}

/** Returns whether the focus is on the cell now; if it is elsewhere, it stays there. */
function close(editor, reason) {
  const { dialog, isStale } = editor;
  const isHere = hasKeyboard(editor);
  const cell = currentCell(editor.cell);
  editors.delete(dialog);
  editor.asking?.abort();
  editor.checking.stop();
  dialog.remove();
  const row = cell.parentElement;
  if (![...editors.values()].some((other) => other.cell.parentElement === row)) delete row?.dataset.editing;
  const grid = cell.closest("[data-grid]");
  if (grid && isHere) enter(cell, grid);
  if (grid) forgetDraft(grid.dataset.cell);
  if (reason) notify(reason);
  // more than a cell of the grid is not as it was
  if (isStale) document.dispatchEvent(new CustomEvent("grid:changed"));
  return isHere;
}

/** Ask the server to check the text, once typing rests; a newer question ends an older one. */
function checkSoon(form) {
  const editor = editorOf(form);
  follow(editor);
  editor.checking.soon(form);
}

async function check(form, signal) {
  const { status, found } = await postInBackground(form.dataset.check, new FormData(form), signal);
  const note = found.getElementById("cell-note");
  if (status !== 200 || !note) return;
  const wasAgreed = form.elements.agreed?.checked;
  form.querySelector("#cell-note")?.replaceWith(document.adoptNode(note));
  if (wasAgreed && form.elements.agreed) form.elements.agreed.checked = true;
  form.elements.value?.setAttribute("aria-invalid", String(note.dataset.kind === "error"));
  if (editorOf(form)) follow(editorOf(form)); // there may be no room below
}

/** The editor as another type, or in another form, its value converted. */
async function retype(form) {
  const editor = editorOf(form);
  editor.checking.stop();
  const before = form.elements.value?.value;
  const next = await retyped(form);
  if (isOpen(editor) && next) renewForm(editor, form, next, before);
}

/** Show what the server made of a value; what was typed meanwhile is newer. */
function renewForm(editor, form, next, before) {
  const typed = form.elements.value?.value;
  show(editor, next);
  if (typed === before || typed === undefined || next.elements.value.type === "checkbox") return;
  next.elements.value.value = typed;
  checkSoon(next);
}

/** Save once at a time; a request without an answer is given up for the form's present values. */
function save(editor, form, submitter, goOn) {
  if (editor.saving) {
    if (!recovery.isWaiting(editor.saving.signal)) return;
    editor.saving.abort();
  }
  editor.checking.stop();
  editor.saving = new AbortController();
  editor.work = send(editor, form, submitter, goOn, editor.saving);
  moveOn(editor, goOn); // text typed next is for the next cell, not for this one
}

function moveOn(editor, goOn) {
  if (hasKeyboard(editor)) editor.next = goOn?.(currentCell(editor.cell)) ?? null;
}

async function send(editor, form, submitter, goOn, saving) {
  const body = new FormData(form, submitter);
  if ("staged" in form.dataset) body.set("stage", "1");
  editor.cell = currentCell(editor.cell);
  describeRow(body, editor.cell);
  form.ariaBusy = "true";
  const sent = state(form);
  const before = form.elements.value?.value;
  try {
    const { status, found } = await post(form.getAttribute("action"), body, saving.signal);
    announce(found);
    const again = found.getElementById("cell-editor");
    if (again) return isOpen(editor) && renewForm(editor, form, again, before);
    const isSaved = status === 200 && found.querySelector("template[data-row], template[data-change]");
    if (!isSaved) return notify(explain(found, status));
    await finish(editor, form, found, sent, goOn);
  } finally {
    if (editor.saving === saving) {
      editor.saving = null;
      form.ariaBusy = null;
    }
  }
}

async function finish(editor, form, found, sent, goOn) {
  editor.cell = currentCell(editor.cell);
  const { cell } = editor;
  const type = form.elements.type.value;
  const change = found.querySelector("template[data-change]");
  editor.isStale = !change && ![type, "mix"].includes(headOf(cell).dataset.type);
  if (change) keep(cell, change);
  else await renew(cell.parentElement, found.querySelector("template[data-row]"));
  editor.cell = currentCell(cell);
  if (!change) editor.cell.dataset.saved = ""; // marked for a moment
  if (!isOpen(editor)) return;
  if (state(form) !== sent) return goOnEditing(editor, form, sent);
  if (close(editor)) goOn?.(currentCell(cell));
}

/** Text typed after the value was sent stays, as a change of the value that was saved. */
function goOnEditing(editor, form, sent) {
  editor.first = sent;
  editor.cell.parentElement.dataset.editing = "";
  form.querySelector("input[name=etag]").value = editor.cell.parentElement.dataset.etag;
  follow(editor);
}

// keys

document.addEventListener("dblclick", (event) => {
  const cell = editable(event.target);
  if (!cell) return;
  event.preventDefault();
  getSelection()?.removeAllRanges();
  edit(cell);
});

function editableCell({ target }) {
  return target.matches?.("td") && editable(target);
}

bind(editableCell, {
  "cell.edit": (cell) => edit(cell),
  Character: (cell, { key }) => edit(cell, key),
  // an input method has begun a character
  Process: (cell) => {
    if (!cell.isContentEditable) edit(cell, "");
    return false;
  },
});

/** The field before the editor comes: Enter and the like end the typing, and Escape takes it back. */
function waitingField({ target }) {
  const editor = editorOf(target);
  return editor?.field === target && editor;
}

const end = (editor, { key, shiftKey, repeat }) => void (repeat || endTyping(editor, key === "Tab" && shiftKey ? "BackTab" : key));

bind(waitingField, {
  Escape: (editor) => void close(editor),
  "Enter Tab Shift+Tab": end,
  [ARROWS]: (editor, event) => movesOn(editor, event) && end(editor, event),
});

function endTyping(editor, key) {
  moveOn(editor, then(key));
  editor.ending = key;
  editor.field.readOnly = true;
  const { signal } = editor.asking;
  if (signal.aborted || recovery.isWaiting(signal)) ask(editor);
}

on("click", "[data-waiting-cancel]", (button) => close(editorOf(button)));
on("click", "[data-waiting-retry]", (button) => {
  editorOf(button).field.focus();
  ask(editorOf(button));
});

// a connection that failed, a refusal, or a sign-in
document.addEventListener("tablero:unsent", () => {
  for (const editor of editors.values()) goOnTyping(editor);
});

// a value on its own goes into the cell; several cells are for range.js, rows for paste.js
document.addEventListener("paste", (event) => {
  const cell = document.activeElement?.matches("td") ? editable(document.activeElement) : null;
  const text = event.clipboardData?.getData("text/plain").replace(/\r?\n$/, "") ?? "";
  if (!cell || event.defaultPrevented || !text || /[\t\n]|^\s*[[{]/.test(text)) return;
  event.preventDefault();
  edit(cell, text, { isPasted: true });
});

// in the editor

function openEditor({ target }) {
  const form = target.closest?.("dialog #cell-editor");
  return form && editorOf(form);
}

const formOf = ({ dialog }) => dialog.querySelector("#cell-editor");

/** The editor, where it is a line over its cell and not a dialog. */
function editorLine(event) {
  const editor = openEditor(event);
  return editor && formOf(editor).dataset.size === "line" && editor;
}

function fieldOfLine(event) {
  const editor = editorLine(event);
  return editor && event.target === formOf(editor).elements.value && editor;
}

function toolOfLine(event) {
  return fieldOfLine(event) ? null : editorLine(event);
}

const finishAt = (editor, key) => void finishLine(editor, formOf(editor), then(key));

bind(fieldOfLine, {
  "editor.tools": (editor) => formOf(editor).elements.type.focus(),
  Tab: (editor) => finishAt(editor, "Tab"),
  "Shift+Tab": (editor) => finishAt(editor, "BackTab"),
  [ARROWS]: (editor, event) => movesOn(editor, event) && finishAt(editor, event.key),
});
bind(editorLine, {
  "Enter Alt+Enter": (editor, { target }) => target.matches("input:not([type=file]), select, textarea") && void finishLine(editor, formOf(editor)),
});
bind(toolOfLine, { "Tab Shift+Tab": (editor, event) => circle(event, formOf(editor)) });
bind(openEditor, {
  Escape: (editor) => void close(editor),
  "editor.save": (editor) => void finishLine(editor, formOf(editor)),
});

/** Arrows move on from a value that was replaced; in one that is edited they move the caret, as far as it can. */
function movesOn(editor, { key, target }) {
  return editor.isReplacing || (["ArrowUp", "ArrowDown"].includes(key) && target.matches("input[type=text]"));
}

/** Enter and Tab: save, or just leave when nothing was changed. */
function finishLine(editor, form, goOn) {
  if (state(form) !== editor.first || form.querySelector("[data-mine]")) {
    save(editor, form, form.querySelector("[data-save]"), goOn);
    return editor.work;
  }
  if (close(editor)) goOn?.(currentCell(editor.cell));
}

/** Among the tools Tab goes round. */
function circle(event, form) {
  const stops = [...form.querySelectorAll("select, input:not([type=hidden], [tabindex='-1']), textarea, button, a[href]")].filter((stop) => stop.offsetParent);
  const at = stops.indexOf(event.target);
  const to = event.shiftKey ? at - 1 : at + 1;
  if (at < 0 || (to >= 0 && to < stops.length)) return false;
  stops.at(to % stops.length).focus();
}

onSubmit("dialog #cell-editor", (form, submitter) => save(editorOf(form), form, submitter));
for (const [selector, act] of [["[data-cancel]", close], ["[data-theirs]", takeTheirs]])
  on("click", `dialog #cell-editor ${selector}`, (button, event) => {
    event.preventDefault();
    act(editorOf(button));
  });

async function takeTheirs(editor) {
  await renew(currentCell(editor.cell).parentElement);
  close(editor);
}

listen({ check: checkSoon, retype });
listenToInputMethods(editable, edit);

// a click beside the editor leaves it: what was changed is saved
document.addEventListener("pointerdown", ({ target }) => {
  for (const editor of [...editors.values()]) {
    if (editor.dialog.contains(target)) editor.isReplacing = false;
    else if (!target.closest(".toasts, dialog")) leave(editor);
  }
});

function leave(editor) {
  if (editor.field) return leaveField(editor);
  const form = editor.dialog.querySelector("form");
  if (form.dataset.size === "line" && !form.querySelector("[data-theirs]")) finishLine(editor, form);
}

function leaveField(editor) {
  const { signal } = editor.asking;
  if (isEmpty(editor)) close(editor);
  else if (!signal.aborted && !recovery.isWaiting(signal)) editor.ending = LEFT;
}

// a reload opens the editor again with the typed text
function keepDrafts() {
  for (const editor of editors.values()) {
    const form = editor.dialog.querySelector("form");
    if (editor.field ? editor.field.value && !editor.isAdding : state(form) !== editor.first) keepDraft(form);
  }
}

addEventListener("pagehide", keepDrafts);

function reopen() {
  const grid = document.querySelector("[data-grid][data-cell]");
  const draft = Object.fromEntries(grid ? draftOf(grid.dataset.cell) : []);
  const cell = draft.key && cellOf(draft.key, draft.property);
  if (!cell) return;
  enter(cell, grid);
  if (draft.type) edit(cell, undefined, { draft });
  else edit(cell, draft.value, { isPasted: true }); // typed before the editor had come
}

/** The editors go with their page. */
function abandon() {
  keepDrafts();
  for (const { asking, saving, checking } of editors.values()) {
    asking?.abort();
    saving?.abort();
    checking.stop();
  }
  editors.clear();
}

onPage((left) => {
  left.addEventListener("abort", abandon);
  reopen();
});

/** Keep an editor at its cell, if the cell is on the page. */
function follow({ dialog, cell }) {
  const now = currentCell(cell);
  if (now.isConnected && dialog.matches(".cell-layer[open]")) place(dialog, now);
}

const followAll = () => [...editors.values()].forEach(follow);
for (const kind of ["scroll", "resize"]) addEventListener(kind, followAll, { capture: true, passive: true });
onSwap(followAll, ["grid:renewed"]);
globalThis.visualViewport?.addEventListener("resize", followAll);
