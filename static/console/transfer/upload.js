// A file for an import, dropped, chosen or pasted: sent in pieces, each again until the server has it. An upload that was
// interrupted goes on when the same file is chosen again.
import { onClick, onSubmit } from "../site/on.js";
import { get, json, request } from "../site/request.js";

const PIECE = 1024 * 1024; // bytes; the server takes no larger body
const LONG_TEXT = 100_000; // characters that a field is slow to show

onSubmit("[data-upload]", async (form) => {
  const file = form.elements.file.files[0] ?? pasted(form);
  if (!file || form.ariaBusy === "true") return form.elements.file.focus();
  form.ariaBusy = "true";
  say(form, "");
  try {
    const next = await send(form, file);
    if (form.isConnected) location.assign(next);
  } catch (error) {
    if (error.name !== "AbortError") say(form, error.message);
    form.ariaBusy = null;
  }
});

function pasted(form) {
  const text = form.elements.text?.value ?? "";
  return text.trim() ? new File([text], "pasted.txt") : null;
}

/** Upload a file; the address of the next step. */
async function send(form, file) {
  const name = `import ${form.action} ${form.elements.table?.value ?? ""} ${file.name} ${file.size} ${file.lastModified}`;
  const isKept = file === form.elements.file.files[0]; // pasted text cannot be chosen again
  let address = isKept ? localStorage.getItem(name) : null;
  let at = address ? await resume(address) : null;
  if (at === null) {
    const body = new FormData(form);
    body.delete("file");
    body.delete("text");
    body.set("name", file.name);
    body.set("size", file.size);
    ({ address } = await json(form.action, { method: "POST", body }));
    if (isKept) localStorage.setItem(name, address);
    at = { size: 0, next: "" };
  }
  while (!at.next && form.isConnected) {
    show(form, file, at.size);
    at = await put(form, address, file.slice(at.size, at.size + PIECE), at.size);
  }
  show(form, file, at.size);
  localStorage.removeItem(name);
  return at.next;
}

/** How far an earlier upload of a file is; null if that is no longer kept. */
async function resume(address) {
  try {
    return await json(address);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null;
  }
}

async function put(form, address, body, start) {
  const headers = { "Content-Type": "application/octet-stream", "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  const answer = await request(`${address}?start=${start}`, { method: "POST", body, headers });
  if (answer.ok) return answer.json();
  const refusal = await answer.json().catch(() => ({}));
  throw new Error(refusal.error ?? form.dataset.lost);
}

function show(form, file, size) {
  const share = file.size ? Math.floor((size * 100) / file.size) : 100;
  const region = form.querySelector("[data-upload-progress]");
  region.hidden = false;
  region.querySelector("progress").value = share;
  region.querySelector("[data-upload-status]").textContent = `${form.dataset.wait.replace("{}", file.name)} · ${share} %`;
}

function say(form, text) {
  const error = form.querySelector("[data-upload-error]");
  error.querySelector("div").textContent = text;
  error.hidden = !text;
}

// a file may be dropped anywhere on the page for it, and on pages with a link to that page

function carriesFile(event) {
  return event.dataTransfer?.types.includes("Files") && document.querySelector("[data-upload], [data-import]");
}

document.addEventListener("dragover", (event) => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  document.documentElement.classList.add("dropping");
});
for (const kind of ["dragleave", "drop"]) {
  document.addEventListener(kind, () => document.documentElement.classList.remove("dropping"));
}
document.addEventListener("drop", async (event) => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  const { files } = event.dataTransfer;
  const form = document.querySelector("[data-upload]") ?? (await open(document.querySelector("[data-import]").href));
  form.elements.file.files = files;
  if (!suggestName(form)) form.requestSubmit();
});
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-upload] [name=file]") && target.files.length) suggestName(target.form);
});

// a long text that is pasted becomes the chosen file
document.addEventListener("paste", (event) => {
  const text = event.clipboardData.getData("text");
  if (!event.target.matches("[data-upload] [name=text]") || text.length < LONG_TEXT) return;
  event.preventDefault();
  const carried = new DataTransfer();
  carried.items.add(new File([text], "pasted.txt"));
  event.target.form.elements.file.files = carried.files;
});

/** Ask for the name of a table that is missing, with one like that of the file; whether it is. */
function suggestName(form) {
  const field = form.elements.table;
  if (!field || field.value) return false;
  const [stem] = form.elements.file.files[0].name.split(".");
  field.value = stem.replace(/[^A-Za-z0-9]|^[0-9]+/g, "").slice(0, field.maxLength);
  field.select();
  return true;
}

/** The form of the page for imports, in a dialog over this one. */
async function open(address) {
  const { found } = await get(address);
  const form = document.adoptNode(found.querySelector("[data-upload]"));
  const dialog = document.createElement("dialog");
  dialog.className = "dialog import-dialog";
  dialog.ariaLabel = form.dataset.title;
  const head = document.createElement("div");
  head.className = "head";
  head.append(document.createElement("h2"));
  head.firstChild.textContent = form.dataset.title;
  dialog.append(head, form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return form;
}

onClick(".import-dialog [data-close]", (link) => link.closest("dialog").close());
