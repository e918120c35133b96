// The form of an entity: rows that come, go and change their type, what was changed, and one question before leaving.
import { bind } from "../site/commands.js";
import { newest, on, onClick, onSwap } from "../site/on.js";
import { post } from "../site/request.js";
import "../site/unsaved.js";
import { guid } from "./cell_tools.js";
import "./changed.js";
import "./viewer.js";

const FORM = "form[data-guard]";
const CHECK_AFTER = 300;

function rowOf(element) {
  return element.closest("[data-property]");
}

// changes

function textOf(field) {
  return field.type === "checkbox" ? String(field.checked) : field.value;
}

function isChanged(row) {
  const remove = row.querySelector("[data-remove]");
  const type = row.querySelector("[data-type]");
  const value = row.querySelector("[data-value]:not([type=file])");
  const file = row.querySelector("[type=file]");
  if (!("stored" in row.dataset)) return !remove.checked && !row.closest("template");
  if (remove.checked || file?.files.length) return true;
  const before = before_(type);
  return before !== type.value || (value && textOf(value) !== initial(value));
}

/** The value that the server sent; an option that it selected is marked so. */
function before_(select) {
  return rowOf(select).dataset.type ?? [...select.options].find((option) => option.defaultSelected)?.value;
}

function initial(field) {
  return rowOf(field).dataset.text ?? (field.type === "checkbox" ? String(field.defaultChecked) : field.defaultValue);
}

function count(form) {
  let changes = 0;
  let properties = 0;
  for (const row of form.querySelectorAll("[data-property]")) {
    const changed = isChanged(row);
    row.toggleAttribute("data-changed", changed && "stored" in row.dataset);
    const field = row.querySelector("[data-empty]");
    if (field && !row.querySelector("[data-remove]").checked) field.placeholder = field.dataset.empty;
    changes += changed;
    properties += !row.querySelector("[data-remove]").checked;
  }
  const shown = form.querySelector("[data-change-count]");
  if (shown) shown.textContent = changes === 0 ? "" : amount(shown, changes);
  const label = form.querySelector("[data-save-label]");
  if (label) label.textContent = changes === 0 ? label.dataset.none : amount(label, changes);
  const number = form.closest(".entity")?.querySelector("[data-property-count]");
  if (number && form.querySelector("[data-rows]")) number.textContent = properties;
}

function amount({ dataset }, changes) {
  return changes === 1 ? dataset.one : dataset.many.replace("%s", changes);
}

// rows

function add(form) {
  const list = form.querySelector("[data-rows]");
  const numbers = [...list.querySelectorAll("[data-type]")].map((select) => Number(select.name.split("-")[1]));
  const next = Math.max(-1, ...numbers) + 1;
  const row = form.querySelector("template[data-blank]").content.cloneNode(true).querySelector("[data-property]");
  for (const element of [row, ...row.querySelectorAll("*")])
    for (const attribute of element.attributes)
      attribute.value = attribute.value.replace(/^(.*)-9999(-error)?$/, `$1-${next}$2`);
  list.querySelector("[data-none]")?.remove();
  list.append(row);
  row.querySelector("[data-name]").focus();
  count(form);
}

const asking = new WeakMap(); // by row
const converting = new WeakSet(); // rows that the server draws again, until it has

/** Ask the server about one row, about its newest state only. */
function askerOf(row) {
  if (!asking.has(row)) asking.set(row, newest(CHECK_AFTER, (signal) => ask(row, signal)));
  return asking.get(row);
}

/** Have the row drawn again, for another type or form. */
function convert(row) {
  converting.add(row);
  askerOf(row).now();
}

/** The server's answer replaces a row that is converted, or else only its notes. */
async function ask(row, signal) {
  const form = row.closest("form");
  const body = new FormData();
  for (const field of row.querySelectorAll("input, textarea, select")) {
    if (!field.name || field.type === "file" || (field.type === "checkbox" && !field.checked)) continue;
    body.append(field.name, field.value);
  }
  if (row.querySelector('[name^="kept-"]')) body.append("opened", form.elements.opened?.value ?? "");
  body.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  const answer = await post(form.dataset.row, body, signal);
  if (answer.status !== 200 || signal.aborted || !row.isConnected) return;
  const found = answer.found.querySelector("[data-property]");
  if (converting.has(row)) replaceRow(row, document.adoptNode(found));
  else replaceNotes(row, found);
}

function replaceRow(row, found) {
  const value = row.querySelector("[data-value]:not([type=file])");
  if ("stored" in row.dataset) {
    found.dataset.stored = "";
    found.dataset.type = before_(row.querySelector("[data-type]"));
    if (value) found.dataset.text = initial(value);
    const was = row.querySelector(".was");
    if (was && !found.querySelector(".was")) found.querySelector(".property-name").append(was);
  }
  const at = document.activeElement;
  const isHere = row.contains(at) || at === document.body;
  row.replaceWith(found);
  if (isHere) refocus(found, at);
  count(found.closest("form"));
}

/** The field that had the focus, with the caret where it was; or the type. */
function refocus(row, { name, selectionStart: start, selectionEnd: end }) {
  const field = (name && row.querySelector(`[name="${CSS.escape(name)}"]`)) || row.querySelector("[data-type]");
  field.focus();
  if (typeof start === "number" && field.selectionStart !== null) field.setSelectionRange?.(start, end);
}

function replaceNotes(row, found) {
  row.querySelector("[data-notes]").replaceWith(document.adoptNode(found.querySelector("[data-notes]")));
  const field = row.querySelector("[data-check]");
  field.ariaInvalid = row.querySelector("[data-notes] .errors") ? "true" : null;
}

function useType(row, type) {
  const select = row.querySelector("[data-type]");
  select.value = type;
  row.querySelector('[name^="was-"]').value = type; // the text is meant as it stands
  convert(row);
}

onClick("[data-add]", ({ form }) => add(form));
on("click", "[data-use-type]", (button) => useType(rowOf(button), button.dataset.useType));
on("click", "[data-generate]", (button) => put(rowOf(button), guid()));
on("click", "[data-pick]", choose);

const entityForm = ({ target }) => target.closest?.(FORM);
bind(entityForm, {
  "Mod+Enter Mod+Shift+Enter": (form) => {
    form.querySelector(".entity-foot .primary")?.click();
    return false;
  },
});

on("input", FORM, (form, { target }) => {
  const row = rowOf(target);
  if (row && target.matches("[data-value]")) {
    const remove = row.querySelector("[data-remove]");
    if (remove.checked && !("stored" in row.dataset)) remove.checked = false;
  }
  if (row && (target.matches("[data-check]") || converting.has(row))) askerOf(row).soon();
  count(form);
});

on("change", `${FORM} [data-property]`, (row, { target }) => {
  if (target.matches("[data-type], [data-form]")) convert(row);
  else if (target.matches("[data-name]")) adoptType(row, target);
  else if (target.type === "file") showFile(row, target);
  if (row.isConnected) count(row.closest("form"));
});

/** A name that other entities have brings their type along. */
function adoptType(row, name) {
  const known = [...(name.list?.options ?? [])].find((option) => option.value === name.value);
  const select = row.querySelector("[data-type]");
  if (!known || row.querySelector("[data-value]").value || select.value === known.dataset.type) return;
  select.value = known.dataset.type;
  convert(row);
}

function showFile(row, input) {
  const file = input.files[0];
  const shown = input.closest("label").querySelector("span");
  if (!file) return;
  shown.textContent = `${file.name} · ${file.size.toLocaleString()} B`;
  shown.className = "";
}

function put(row, text) {
  const field = row.querySelector("[data-check]");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
}

/** The browser's own picker; what it gives has no zone, which means the reader's. */
function choose(button) {
  const picker = Object.assign(document.createElement("input"), { type: "datetime-local", step: 1, tabIndex: -1 });
  picker.className = "visually-hidden";
  picker.setAttribute("aria-hidden", "true");
  button.after(picker);
  picker.addEventListener("change", () => put(rowOf(button), picker.value));
  picker.addEventListener("blur", () => picker.remove());
  picker.focus();
  picker.showPicker();
}

// a document with the numbers of its lines, and if it is refused the place

function number(field) {
  const numbers = field.parentElement.querySelector("[data-numbers]");
  if (!numbers) return;
  const lines = field.value.split("\n").length;
  if (numbers.dataset.lines !== String(lines)) {
    numbers.dataset.lines = lines;
    numbers.textContent = Array.from({ length: lines }, (_, line) => line + 1).join("\n");
  }
  numbers.scrollTop = field.scrollTop;
}

on("input", "textarea.document", number);
on("scroll", "textarea.document", number, true);

function showPlace() {
  const field = document.querySelector("textarea[data-line]");
  const line = Number(field?.dataset.line);
  if (!line) return;
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + Number(field.dataset.column) - 1;
  field.focus();
  field.setSelectionRange(start, Math.min(start + 1, field.value.length));
}

function prepare() {
  document.querySelectorAll("textarea.document").forEach(number);
  for (const form of document.querySelectorAll(FORM)) count(form);
  showPlace();
}

onSwap(prepare);
prepare();
