// Rows pasted on the grid: a dialog with their preview.
import { on, onSubmit } from "../site/on.js";
import { explain, get, post } from "../site/request.js";
import { outsideFields } from "../site/dialog.js";
import { nextPart, show } from "../site/part_dialog.js";
import { notify } from "../site/toast.js";

function grid() {
  return document.querySelector("[data-grid][data-paste]");
}

function present(form) {
  show(form.dataset.title, form, form.querySelector("[data-focus]") ?? form.elements.text);
}

let isApplying = false;

/** Ask for a preview, the newest only; or insert the rows, once. */
async function send(form, submitter) {
  if (isApplying) return;
  isApplying = submitter?.name === "apply";
  const signal = isApplying ? undefined : nextPart();
  const text = form.elements.text.value;
  form.ariaBusy = "true";
  const { redirect, found } = await post(form.getAttribute("action"), new FormData(form, submitter), signal).finally(() => {
    isApplying = false;
    form.ariaBusy = null;
  });
  if (form.elements.text.value !== text && !redirect) return send(form); // text typed meanwhile is newer
  if (redirect) return location.assign(location.pathname === redirect ? location.href : redirect);
  const next = found.getElementById("paste");
  if (next) present(next);
  else notify(explain(found));
}

async function open(text) {
  const { found } = await get(grid().dataset.paste, nextPart());
  const form = found.getElementById("paste");
  if (!form) return;
  // the columns, for lines without a header, and their types here
  for (const head of grid().querySelectorAll("th[data-property]")) {
    const { property, type } = head.dataset;
    add(form, "column", property);
    if (type?.startsWith("Edm.")) add(form, `known:${property}`, type);
  }
  form.elements.text.value = text;
  present(form);
  send(form);
}

function add(form, name, value) {
  form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
}

document.addEventListener("paste", (event) => {
  const target = event.target instanceof Element ? event.target : document.activeElement;
  if (!grid() || !outsideFields({ target })) return;
  const text = event.clipboardData?.getData("text/plain") ?? "";
  if (!/[\t\n]|^\s*[[{]/.test(text.trim())) return;
  event.preventDefault();
  open(text);
});

onSubmit("#part-dialog #paste", send);
on("change", "#part-dialog #paste", (form, { target }) => {
  if (target.matches("[data-retype], [name=mode]") && form.querySelector("[data-focus]")) send(form);
});
