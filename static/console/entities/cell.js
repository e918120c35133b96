// The editor of a cell: Enter, F2, a double click or a first character opens it in place, a long value in a dialog.
import { announce, get, post } from "../site/request.js";
import { enter } from "../grid/grid.js";
import { find, keep } from "./staged.js";
import { notify } from "../site/toast.js";
import "./deletion.js";
import "./paste.js";

const WAIT = 250; // ms after the last key, before a text is checked
let open = null; // { dialog, cell, first: the text it opened with, typed: characters that came before the editor }

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

async function edit(cell, typed, isPasted = false) {
  if (open) return;
  const dialog = document.createElement("dialog");
  open = { dialog, cell, typed, isPasted, first: null };
  cell.parentElement.dataset.editing = "";
  try {
    const { status, found } = await get(addressOf(cell));
    const form = found.getElementById("cell-editor");
    if (status !== 200 || !form) return close(found.querySelector("h1")?.textContent);
    document.body.append(dialog);
    open.isStale = form.elements.etag.value !== cell.parentElement.dataset.etag;
    show(form);
    restore(cell, dialog);
  } catch {
    close(cell.closest("[data-grid]").dataset.offline);
  }
}

/** Put a form into the editor: in place over its cell, or as a dialog when the value is long. */
function show(form) {
  const { dialog, cell } = open;
  if (dialog.open) dialog.close();
  dialog.className = form.dataset.size === "large" ? "dialog cell-dialog" : "cell-layer";
  dialog.setAttribute("aria-label", form.getAttribute("aria-label"));
  dialog.replaceChildren(document.adoptNode(form));
  if (form.dataset.size === "large") dialog.showModal();
  else {
    dialog.show();
    place(dialog, cell);
  }
  const field = form.elements.value;
  if (open.first === null) open.first = state(form);
  if (open.typed !== undefined && (field?.type === "text" || (open.isPasted && field?.type === "textarea"))) {
    field.value = open.typed;
    check(form);
  }
  const caret = open.typed === undefined ? 0 : field?.value.length;
  open.typed = undefined;
  const conflict = form.querySelector("#cell-conflict-title");
  (conflict ?? field)?.focus();
  if (!conflict && field?.type === "text") field.setSelectionRange(caret, field.value.length);
}

function place(dialog, cell) {
  const box = cell.getBoundingClientRect();
  const width = Math.min(Math.max(box.width, 420), innerWidth - 16);
  const left = Math.max(8, Math.min(box.left, innerWidth - width - 8));
  dialog.style.setProperty("width", `${width}px`);
  dialog.style.setProperty("left", `${left}px`);
  const top = Math.min(box.top - 1, innerHeight - dialog.offsetHeight - 8);
  dialog.style.setProperty("top", `${Math.max(8, top)}px`);
}

/** What was staged before is what is edited now. */
async function restore(cell, dialog) {
  const staged = find(cell);
  if (!staged || staged.removed) return;
  const form = dialog.querySelector("form");
  const body = new FormData(form);
  body.delete("value");
  for (const [name, value] of Object.entries({ retype: "1", type: staged.type, form: staged.form, value: staged.text })) body.set(name, value);
  body.set("from", staged.type);
  body.set("from_form", staged.form);
  const { status, found } = await post(form.dataset.check, body);
  if (open?.dialog === dialog && status === 200) show(found.getElementById("cell-editor"));
}

function state(form) {
  const { value, type } = form.elements;
  return JSON.stringify([value?.type === "checkbox" ? value.checked : value?.value, type.value, form.elements.form?.value]);
}

function close(reason) {
  const { dialog, cell, isStale } = open;
  open = null;
  // whoever has gone somewhere else meanwhile stays there
  const isHere = dialog.contains(document.activeElement) || document.activeElement === document.body || !dialog.isConnected;
  dialog.remove();
  const row = cell.parentElement;
  delete row?.dataset.editing;
  const grid = cell.closest("[data-grid]");
  if (grid && isHere) enter(cell, grid);
  if (reason) notify(reason);
  if (isStale) lookAnew();
}

/** The whole grid, when more than a cell of it is not as it was. */
function lookAnew() {
  document.dispatchEvent(new CustomEvent("grid:changed"));
}

let timer;
let asked = null;

/** Ask what there is to say about the text, once typing rests; a newer question ends an older one. */
function check(form) {
  clearTimeout(timer);
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
      if (error.name !== "AbortError") notify(form.dataset.offline);
    }
  }, WAIT);
}

/** The editor as another type, or in another form, its value converted. */
async function retype(form) {
  clearTimeout(timer);
  asked?.abort();
  const body = new FormData(form);
  body.set("retype", "1");
  try {
    const { status, found } = await post(form.dataset.check, body);
    const next = found.getElementById("cell-editor");
    if (!open || status !== 200 || !next) return;
    const typed = form.elements.value?.value;
    show(next);
    // what was typed meanwhile is newer than what was converted
    if (typed !== body.get("value") && typed !== undefined && next.elements.value.type !== "checkbox") put(next, typed);
  } catch {
    notify(form.dataset.offline);
  }
}

async function save(form, submitter, then) {
  if (form.ariaBusy === "true") return;
  clearTimeout(timer);
  asked?.abort();
  const { cell } = open;
  const body = new FormData(form, submitter);
  if ("staged" in form.dataset) body.set("stage", "1");
  const row = cell.parentElement;
  const heads = [...cell.closest("table").querySelectorAll("th[data-property]")];
  for (const head of heads) body.append("column", head.dataset.property);
  body.set("index", row.getAttribute("aria-rowindex"));
  form.ariaBusy = "true";
  try {
    const { status, found } = await post(form.getAttribute("action"), body);
    if (!open) return;
    announce(found);
    const again = found.getElementById("cell-editor");
    if (again) return show(again);
    // the page to sign in is an answer too
    const isSaved = status === 200 && found.querySelector("template[data-row], template[data-change]");
    if (!isSaved) return notify(found.querySelector("h1")?.textContent ?? form.dataset.offline);
    await finish(found, then);
  } catch {
    notify(form.dataset.offline);
  } finally {
    form.ariaBusy = null;
  }
}

async function finish(found, then) {
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
  then?.(cellOf(key, property));
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

function right(cell) {
  const next = cell?.nextElementSibling;
  if (next) enter(next, cell.closest("[data-grid]"));
}

document.addEventListener("dblclick", (event) => {
  const cell = editable(event.target);
  if (!cell) return;
  event.preventDefault();
  getSelection()?.removeAllRanges();
  edit(cell);
});

document.addEventListener("keydown", (event) => {
  if (open && !open.dialog.isConnected && event.key.length === 1 && open.typed !== undefined) {
    open.typed += event.key; // typed faster than the editor came
    return event.preventDefault();
  }
  const cell = event.target.matches?.("td") ? editable(event.target) : null;
  if (!cell || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Enter" || event.key === "F2") {
    event.preventDefault();
    edit(cell);
  } else if (starts(event.key)) {
    event.preventDefault();
    edit(cell, event.key);
  }
});

// a value on its own goes into the cell; rows are for paste.js
document.addEventListener("paste", (event) => {
  const cell = document.activeElement?.matches("td") ? editable(document.activeElement) : null;
  const text = event.clipboardData?.getData("text/plain").replace(/\r?\n$/, "") ?? "";
  if (!cell || !text || /[\t\n]|^\s*[[{]/.test(text)) return;
  event.preventDefault();
  edit(cell, text, true);
});

/** Characters that no shortcut of the grid uses begin a new value. */
function starts(key) {
  const areShortcutsOn = document.documentElement.dataset.shortcuts !== "off";
  return /^[0-9.+"{}'=-]$/.test(key) || (!areShortcutsOn && key.length === 1 && key !== " ");
}

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("dialog #cell-editor");
  if (!form || event.isComposing) return;
  const isLine = form.dataset.size === "line";
  if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close();
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (isLine && event.target.matches("input, select")))) {
    event.preventDefault();
    finishLine(form);
  } else if (event.key === "Tab" && isLine) {
    tab(event, form);
  }
});

/** Enter and Tab: save, or just leave when nothing was changed. */
function finishLine(form, then) {
  if (state(form) === open.first && !form.querySelector("[data-mine]")) {
    const { cell } = open;
    close();
    then?.(cell);
  } else {
    save(form, form.querySelector("[data-save]"), then);
  }
}

function tab(event, form) {
  const stops = [...form.querySelectorAll("select, input:not([type=hidden], [tabindex='-1']), button, a[href]")].filter((stop) => stop.offsetParent);
  if (event.target === form.elements.value && !event.shiftKey) {
    event.preventDefault();
    finishLine(form, right);
  } else if (event.shiftKey && event.target === stops[0]) {
    event.preventDefault();
    stops.at(-1).focus();
  } else if (!event.shiftKey && event.target === stops.at(-1)) {
    event.preventDefault();
    stops[0].focus();
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("dialog #cell-editor");
  if (!form) return;
  event.preventDefault();
  save(form, event.submitter);
});

document.addEventListener("input", (event) => {
  const form = event.target.closest("dialog #cell-editor");
  if (!form) return;
  if (event.target.name === "value") check(form);
  if (event.target.matches("[data-cell-moment]") && event.target.value) put(form, event.target.value);
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("dialog #cell-editor");
  if (!form) return;
  if (["type", "form"].includes(event.target.name)) retype(form);
  if (event.target.matches("[data-cell-upload]")) upload(form, event.target.files[0]);
});

document.addEventListener("click", (event) => {
  const form = event.target.closest("dialog #cell-editor");
  if (!form) return;
  const button = event.target.closest("button, a");
  if (!button) return;
  if (button.matches("[data-cancel]")) {
    event.preventDefault();
    close();
  } else if (button.matches("[data-theirs]")) {
    event.preventDefault();
    takeTheirs();
  } else if (button.dataset.cellSuggest) {
    form.elements.type.value = button.dataset.cellSuggest;
    retype(form);
  } else if (button.matches("[data-cell-guid]")) {
    put(form, guid());
  } else if (button.matches("[data-cell-pick]")) {
    form.querySelector("[data-cell-moment]").showPicker();
  }
});

async function takeTheirs() {
  const row = open.cell.parentElement;
  const { property } = open.cell.dataset;
  await renew(row);
  open.cell = cellOf(row.dataset.key, property) ?? open.cell;
  close();
}

function put(form, text) {
  form.elements.value.value = text;
  form.elements.value.focus();
  check(form);
}

// randomUUID is only there for pages that came over HTTPS
function guid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}

async function upload(form, file) {
  if (!file) return;
  const bytes = new Uint8Array(await file.slice(0, 65537).arrayBuffer());
  const hex = form.querySelector('[name="form"][value="hex"]');
  hex.checked = true;
  form.elements.from_form.value = "hex";
  put(form, [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
}

// a click beside the editor leaves it: what was changed is saved
document.addEventListener("pointerdown", (event) => {
  if (!open?.dialog.isConnected || open.dialog.contains(event.target) || event.target.closest(".toasts")) return;
  const form = open.dialog.querySelector("form");
  if (form.dataset.size === "line" && !form.querySelector("[data-theirs]")) finishLine(form);
});
for (const kind of ["scroll", "resize"])
  addEventListener(kind, () => open?.dialog.matches(".cell-layer") && place(open.dialog, open.cell), { capture: true, passive: true });
