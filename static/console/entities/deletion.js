// Deleting without leaving the page: the ticked rows, one by its own button, or step by step all that a query matches. A
// protected account asks first.
import { onClick } from "../site/on.js";
import { announce, explain, post } from "../site/request.js";
import { current, enter } from "../grid/grid.js";
import { clear } from "../grid/selection.js";
import { close, show } from "../site/part_dialog.js";
import { notify } from "../site/toast.js";

const selection = () => document.getElementById("selection");

async function send(address, body) {
  const { found } = await post(address, body);
  announce(found);
  if (!found.querySelector("[hx-swap-oob], #deletion")) return notify(explain(found));
  const question = found.getElementById("deletion");
  if (question && "goesOn" in question.dataset) return goOn(question);
  if (question) return show(question.dataset.title, question, question.querySelector("[data-close]"));
  close();
  if (found.querySelector("template[data-deleted]")) {
    clear();
    document.addEventListener("grid:renewed", keepFocus, { once: true });
  }
  document.dispatchEvent(new CustomEvent("grid:changed"));
}

let isStopped = false;

/** The next step, until there is none, or the user stops it or closes the dialog. */
function goOn(form) {
  const stop = form.querySelector("[data-stop]");
  const body = new FormData(form, isStopped ? stop : null);
  if (!isStopped) show(form.dataset.title, form, stop);
  send(form.getAttribute("action"), body);
}

onClick("#part-dialog [data-stop]", (stop) => {
  isStopped = true;
  stop.disabled = true;
});
document.getElementById("part-dialog")?.addEventListener("close", () => (isStopped = true));

/** What had the focus may be gone with the rows. */
function keepFocus() {
  const grid = document.querySelector("#results [data-grid]");
  const it = document.activeElement;
  if (grid && (it === document.body || !it?.checkVisibility())) enter(current(grid));
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest?.("#selection, #part-dialog #deletion");
  if (!form || (form.id === "selection" && !event.submitter?.matches("[data-delete]"))) return;
  event.preventDefault();
  isStopped = false;
  // formAction is the address of the page where a button has none
  send(event.submitter.getAttribute("formaction") ?? form.getAttribute("action"), new FormData(form, event.submitter));
});

/** One row, whatever else is ticked. */
document.addEventListener("tablero:delete", (event) => {
  const form = selection();
  const button = form.querySelector("[data-delete]");
  const body = new FormData();
  for (const name of ["csrfmiddlewaretoken", "next"]) body.set(name, form.elements[name].value);
  body.set("scope", "rows");
  body.set("key", event.detail);
  send(button.formAction, body);
});
