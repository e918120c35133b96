// The editor of a cell: Enter, F2 or a double click opens it in place, any character does too and replaces the value.
import { announce, get, post } from "../site/request.js";
import { enter } from "../grid/grid.js";
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
// { dialog, cell, first: the state it opened with, typed: characters that came before the editor, ending: a key that did,
// isReplacing: the value was typed anew, so that arrows move on }
let open = null;

function editable(target) {
  const cell = target.closest?.("[data-grid][data-cell] td[data-property]");
  return cell && !target.closest("a, button, input, dialog") ? cell : null;
}

function cellOf(key, property) {
  const row = document.querySelector(`[data-grid] tr[data-key="${CSS.escape(key)}"]`);
  return row?.querySelector(`td[data-property="${CSS.escape(property)}"]`);
}

function addressOf(cell) {
  const grid = cell.closest("[data-grid]");
  const head = grid.querySelector(`th[data-property="${CSS.escape(cell.dataset.property)}"]`);
  const row = cell.parentElement;
  const query = new URLSearchParams({
    key: row.dataset.key,
    property: cell.dataset.property,
    etag: row.dataset.etag,
    type: head?.dataset.type ?? "",
    next: location.pathname + location.search,
  });
  return `${grid.dataset.cell}?${query}`;
}

/** `draft`: the fields of an editor of this cell that a reload took away. */
async function edit(cell, typed, { isPasted = false, draft = null } = {}) {
  if (open) return;
  begin(cell, { typed, isPasted, isReplacing: typed !== undefined && !isPasted });
  const { dialog } = open;
  try {
    const { status, found } = await get(addressOf(cell));
    const form = found.getElementById("cell-editor");
    if (open?.dialog !== dialog) return;
    if (status !== 200 || !form) return close(found.querySelector("h1")?.textContent);
    present(form);
    const staged = find(cell);
    if (draft) putBack(dialog, draft);
    else if (staged && !staged.removed) putBack(dialog, { type: staged.type, form: staged.form, value: staged.text });
  } catch {
    if (open?.dialog === dialog) close(); // the request was given up
  }
}

function begin(cell, more) {
  open = { dialog: document.createElement("dialog"), cell, first: null, ...more };
  cell.parentElement.dataset.editing = "";
}

function present(form) {
  document.body.append(open.dialog);
  open.isStale = form.elements.etag.value !== open.cell.parentElement.dataset.etag;
  show(form);
}

/** What was refused or met a conflict while no editor was open. */
document.addEventListener("cell:refused", ({ detail: { cell, form } }) => {
  if (open) return;
  begin(cell, {});
  present(form);
});

/** Put a form into the editor: in place over its cell, or as a dialog when the value is long. */
function show(form) {
  const { dialog, cell } = open;
  if (dialog.open) dialog.close();
  const isLarge = form.dataset.size === "large";
  dialog.className = isLarge ? "dialog cell-dialog" : "cell-layer";
  dialog.setAttribute("aria-label", form.getAttribute("aria-label"));
  dialog.replaceChildren(document.adoptNode(form));
  const field = form.elements.value;
  open.first ??= state(form);
  if (open.typed !== undefined && field.type !== "checkbox") {
    field.value = open.typed;
    check(form);
  }
  open.typed = undefined;
  if (isLarge) dialog.showModal();
  else {
    dialog.show();
    place(dialog, cell);
  }
  const conflict = form.querySelector("#cell-conflict-title");
  (conflict ?? field).focus();
  if (!conflict && field.type !== "checkbox") field.setSelectionRange(isLarge ? 0 : field.value.length, isLarge ? 0 : field.value.length);
  const { ending } = open;
  open.ending = null;
  if (ending && !isLarge && !conflict) finishLine(form, then(ending));
}

/** What was typed before is what is edited now. */
async function putBack(dialog, fields) {
  const form = dialog.querySelector("form");
  const body = new FormData(form);
  body.delete("value");
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  body.set("retype", "1");
  body.set("from", fields.type);
  body.set("from_form", fields.form ?? "");
  const { status, found } = await post(form.dataset.check, body);
  if (open?.dialog === dialog && status === 200) show(found.getElementById("cell-editor"));
}

function state(form) {
  const { value, type } = form.elements;
  return JSON.stringify([value.type === "checkbox" ? value.checked : value.value, type.value, form.elements.form?.value]);
}

function close(reason) {
  const { dialog, cell, isStale } = open;
  open = null;
  // whoever has gone somewhere else meanwhile stays there
  const isHere = dialog.contains(document.activeElement) || document.activeElement === document.body || !dialog.isConnected;
  dialog.remove();
  delete cell.parentElement?.dataset.editing;
  const grid = cell.closest("[data-grid]");
  if (grid && isHere) enter(cell, grid);
  if (grid) forgetDraft(grid.dataset.cell);
  if (reason) notify(reason);
  // more than a cell of the grid is not as it was
  if (isStale) document.dispatchEvent(new CustomEvent("grid:changed"));
}

let timer;
let asked = null;

function rest() {
  clearTimeout(timer);
  asked?.abort();
}

/** Ask what there is to say about the text, once typing rests; a newer question ends an older one. */
function check(form) {
  clearTimeout(timer);
  if (open?.dialog.matches(".cell-layer[open]")) place(open.dialog, open.cell);
  timer = setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    try {
      const { status, found } = await post(form.dataset.check, new FormData(form), asked.signal);
      const note = found.getElementById("cell-note");
      if (status !== 200 || !note) return;
      const wasAgreed = form.elements.agreed?.checked;
      form.querySelector("#cell-note")?.replaceWith(document.adoptNode(note));
      if (wasAgreed && form.elements.agreed) form.elements.agreed.checked = true;
      form.elements.value?.setAttribute("aria-invalid", String(note.dataset.kind === "error"));
      if (open?.dialog.matches(".cell-layer")) place(open.dialog, open.cell); // there may be no room below
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }, WAIT);
}

/** The editor as another type, or in another form, its value converted. */
async function retype(form) {
  rest();
  const body = new FormData(form);
  body.set("retype", "1");
  try {
    const { status, found } = await post(form.dataset.check, body);
    const next = found.getElementById("cell-editor");
    if (!open || status !== 200 || !next) return;
    const typed = form.elements.value?.value;
    show(next);
    // what was typed meanwhile is newer than what was converted
    if (typed !== body.get("value") && typed !== undefined && next.elements.value.type !== "checkbox") {
      next.elements.value.value = typed;
      check(next);
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

async function save(form, submitter, goOn) {
  if (form.ariaBusy === "true") return;
  rest();
  const { cell } = open;
  const body = new FormData(form, submitter);
  if ("staged" in form.dataset) body.set("stage", "1");
  describeRow(body, cell);
  form.ariaBusy = "true";
  try {
    const { status, found } = await post(form.getAttribute("action"), body);
    if (!open) return;
    announce(found);
    const again = found.getElementById("cell-editor");
    if (again) return show(again);
    const isSaved = status === 200 && found.querySelector("template[data-row], template[data-change]");
    if (!isSaved) return notify(found.querySelector("h1")?.textContent ?? String(status));
    await finish(found, goOn);
  } finally {
    form.ariaBusy = null;
  }
}

/** What the server needs to draw the row of a cell again. */
function describeRow(body, cell) {
  const heads = [...cell.closest("table").querySelectorAll("th[data-property]")];
  for (const head of heads) body.append("column", head.dataset.property);
  body.set("index", cell.parentElement.getAttribute("aria-rowindex"));
}

async function finish(found, goOn) {
  const { cell } = open;
  const { key } = cell.parentElement.dataset;
  const { property } = cell.dataset;
  const type = open.dialog.querySelector("#cell-type").value;
  const head = cell.closest("table").querySelector(`th[data-property="${CSS.escape(property)}"]`);
  const change = found.querySelector("template[data-change]");
  open.isStale = !change && ![type, "mix"].includes(head?.dataset.type);
  if (change) keep(cell, change);
  else await renew(cell.parentElement, found.querySelector("template[data-row]"));
  open.cell = cellOf(key, property) ?? cell;
  close();
  goOn?.(cellOf(key, property));
}

/** The row as it is now: from the answer; or else, also where types are mixed, from the page as the server draws it. */
async function renew(row, template) {
  const key = CSS.escape(row.dataset.key);
  const isMixed = row.closest("table").querySelector('th[data-type="mix"]');
  let next = isMixed ? null : template?.content.querySelector("tr");
  if (!next) {
    const { found } = await get(location.href);
    next = found.querySelector(`[data-grid] tr[data-key="${key}"]`) ?? template?.content.querySelector("tr");
  }
  if (!next) return;
  const box = row.querySelector('[name="key"]');
  document.adoptNode(next);
  if (box?.checked) next.querySelector('[name="key"]').checked = true;
  if (row.hasAttribute("aria-selected")) next.setAttribute("aria-selected", row.getAttribute("aria-selected"));
  row.replaceWith(next);
  window.htmx?.process(next);
  document.dispatchEvent(new CustomEvent("tablero:row", { detail: next }));
}

// keys

/** Where a key that ends the editing goes on; Enter stays. */
function then(key) {
  const next = {
    Tab: (cell) => cell.nextElementSibling,
    BackTab: (cell) => cell.previousElementSibling,
    ArrowRight: (cell) => cell.nextElementSibling,
    ArrowLeft: (cell) => cell.previousElementSibling,
    ArrowDown: (cell) => cell.parentElement.nextElementSibling?.cells[cell.cellIndex],
    ArrowUp: (cell) => cell.parentElement.previousElementSibling?.cells[cell.cellIndex],
  }[key];
  return (cell) => {
    const to = cell && next?.(cell);
    if (to) enter(to, cell.closest("[data-grid]"));
  };
}

const nameOf = (event) => (event.key === "Tab" && event.shiftKey ? "BackTab" : event.key);

document.addEventListener("dblclick", (event) => {
  const cell = editable(event.target);
  if (!cell) return;
  event.preventDefault();
  getSelection()?.removeAllRanges();
  edit(cell);
});

document.addEventListener("keydown", (event) => {
  if (open && !open.dialog.isConnected) return beforeEditor(event);
  const cell = event.target.matches?.("td") ? editable(event.target) : null;
  if (!cell || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if ((event.key === "Enter" && !event.shiftKey) || event.key === "F2") {
    event.preventDefault();
    edit(cell);
  } else if (event.key.length === 1 && event.key !== " ") {
    event.preventDefault();
    edit(cell, event.key);
  } else if (event.key === "Process" && !cell.isContentEditable) edit(cell, ""); // an input method has begun a character
});

/** Typed faster than the editor came. */
function beforeEditor(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") close();
  else if (event.key.length === 1 && open.typed !== undefined) open.typed += event.key;
  else if (event.key === "Backspace" && open.typed !== undefined) open.typed = open.typed.slice(0, -1);
  else if (["Enter", "Tab"].includes(event.key) && open.typed !== undefined) open.ending = nameOf(event);
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

// a value on its own goes into the cell; several cells are for range.js, rows for paste.js
document.addEventListener("paste", (event) => {
  const cell = document.activeElement?.matches("td") ? editable(document.activeElement) : null;
  const text = event.clipboardData?.getData("text/plain").replace(/\r?\n$/, "") ?? "";
  if (!cell || event.defaultPrevented || !text || /[\t\n]|^\s*[[{]/.test(text)) return;
  event.preventDefault();
  edit(cell, text, { isPasted: true });
});

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("dialog #cell-editor");
  if (!form || event.isComposing) return;
  const isLine = form.dataset.size === "line";
  const isField = event.target === form.elements.value;
  const isCommand = event.ctrlKey || event.metaKey;
  const key = nameOf(event);
  if (key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close();
  } else if (key === "Enter" && (isCommand || (isLine && !event.shiftKey && event.target.matches("input:not([type=file]), select, textarea")))) {
    event.preventDefault();
    finishLine(form);
  } else if (!isLine) return;
  else if (isField && event.altKey && key === "ArrowDown") {
    event.preventDefault();
    form.elements.type.focus();
  } else if (isField && (key === "Tab" || key === "BackTab" || movesOn(event))) {
    event.preventDefault();
    finishLine(form, then(key));
  } else if (key === "Tab" || key === "BackTab") circle(event, form);
});

/** Arrows move on from a value that was typed anew; in one that is edited they move the caret, as far as it can. */
function movesOn(event) {
  if (!event.key.startsWith("Arrow") || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return false;
  const isVertical = ["ArrowUp", "ArrowDown"].includes(event.key);
  return open.isReplacing || (isVertical && event.target.matches("input[type=text]"));
}

/** Enter and Tab: save, or just leave when nothing was changed. */
function finishLine(form, goOn) {
  if (state(form) === open.first && !form.querySelector("[data-mine]")) {
    const { cell } = open;
    close();
    goOn?.(cell);
  } else {
    save(form, form.querySelector("[data-save]"), goOn);
  }
}

/** Among the tools Tab goes round. */
function circle(event, form) {
  const stops = [...form.querySelectorAll("select, input:not([type=hidden], [tabindex='-1']), textarea, button, a[href]")].filter((stop) => stop.offsetParent);
  const at = stops.indexOf(event.target);
  const to = event.shiftKey ? at - 1 : at + 1;
  if (at < 0 || (to >= 0 && to < stops.length)) return;
  event.preventDefault();
  stops.at(to % stops.length).focus();
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("dialog #cell-editor");
  if (!form) return;
  event.preventDefault();
  save(form, event.submitter);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("dialog #cell-editor :is([data-cancel], [data-theirs])");
  if (!button) return;
  event.preventDefault();
  if (button.matches("[data-cancel]")) close();
  else takeTheirs();
});

async function takeTheirs() {
  const row = open.cell.parentElement;
  const { property } = open.cell.dataset;
  await renew(row);
  open.cell = cellOf(row.dataset.key, property) ?? open.cell;
  close();
}

listen({ check, retype });
listenToInputMethods(editable, edit);

document.addEventListener("pointerdown", (event) => {
  if (!open?.dialog.isConnected) return;
  if (open.dialog.contains(event.target)) open.isReplacing = false;
  // a click beside the editor leaves it: what was changed is saved
  else if (!event.target.closest(".toasts")) leave();
});

function leave() {
  const form = open.dialog.querySelector("form");
  if (form.dataset.size === "line" && !form.querySelector("[data-theirs]")) finishLine(form);
}

// a reload opens the editor again with what was typed
addEventListener("pagehide", () => {
  const form = open?.dialog.querySelector("form");
  if (form && state(form) !== open.first) keepDraft(form);
});

function reopen() {
  const grid = document.querySelector("[data-grid][data-cell]");
  const draft = Object.fromEntries(grid ? draftOf(grid.dataset.cell) : []);
  const cell = draft.key && cellOf(draft.key, draft.property);
  if (!cell) return;
  enter(cell, grid);
  edit(cell, undefined, { draft });
}

reopen();

const follow = () => open?.dialog.matches(".cell-layer[open]") && place(open.dialog, open.cell);
for (const kind of ["scroll", "resize"]) addEventListener(kind, follow, { capture: true, passive: true });
globalThis.visualViewport?.addEventListener("resize", follow);
