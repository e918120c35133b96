// Rows pasted on the grid, or [data-paste-open]: the page for pasting, as a dialog.
import { get, post } from "../site/request.js";
import { isModalOpen } from "../site/dialog.js";
import { show } from "../site/part_dialog.js";
import { notify } from "../site/toast.js";

function grid() {
  return document.querySelector("[data-grid][data-paste]");
}

function present(form) {
  // sent from here, and not by htmx as on the page of its own
  for (const name of form.getAttributeNames()) if (name.startsWith("hx-")) form.removeAttribute(name);
  show(form.dataset.title, form, form.querySelector("[data-focus]") ?? form.elements.text);
}

async function send(form, submitter) {
  form.ariaBusy = "true";
  const { redirect, found } = await post(form.getAttribute("action"), new FormData(form, submitter));
  if (redirect) return location.assign(location.pathname === redirect ? location.href : redirect);
  const next = found.getElementById("paste");
  if (next) present(next);
  else notify(found.querySelector("h1")?.textContent ?? "");
}

async function open(text) {
  const { found } = await get(grid().dataset.paste);
  const form = found.getElementById("paste");
  if (!form) return;
  // what the columns are, for lines without a header, and of what type they are here
  for (const head of grid().querySelectorAll("th[data-property]")) {
    const { property, type } = head.dataset;
    add(form, "column", property);
    if (type?.startsWith("Edm.")) add(form, `known:${property}`, type);
  }
  if (text) form.elements.text.value = text;
  present(form);
  if (text) send(form);
}

function add(form, name, value) {
  form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
}

document.addEventListener("paste", (event) => {
  const target = event.target instanceof Element ? event.target : document.activeElement;
  if (!grid() || isModalOpen() || target?.closest("input, textarea, select, [contenteditable]:not(td), dialog")) return;
  const text = event.clipboardData?.getData("text/plain") ?? "";
  if (!/[\t\n]|^\s*[[{]/.test(text.trim())) return;
  event.preventDefault();
  open(text);
});

document.addEventListener("click", (event) => {
  const opener = event.target.closest?.("[data-paste-open]");
  if (opener && grid() && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    open("");
  }
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("#part-dialog #paste");
  if (!form) return;
  event.preventDefault();
  send(form, event.submitter);
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("#part-dialog #paste");
  if (form && event.target.matches("[data-retype], [name=mode]") && form.querySelector("[data-focus]")) send(form);
});
