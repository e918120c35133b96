// Deleting without leaving the page: the ticked rows, or one by its own button. A protected account asks first. All that a
// query matches is deleted on a page of its own, if there is one.
import { announce, explain, post } from "../site/request.js";
import { current, enter } from "../grid/grid.js";
import { clear } from "../grid/selection.js";
import { close, show } from "../site/part_dialog.js";
import { notify } from "../site/toast.js";

const selection = () => document.querySelector("#selection.selection-bar");

async function send(address, body) {
  const { found } = await post(address, body);
  announce(found);
  if (!found.querySelector("[hx-swap-oob], #deletion")) return notify(explain(found));
  const question = found.getElementById("deletion");
  if (question) return show(question.dataset.title, question, question.querySelector("[data-close]"));
  close();
  if (found.querySelector("template[data-deleted]")) {
    clear();
    document.addEventListener("grid:renewed", keepFocus, { once: true });
  }
  document.dispatchEvent(new CustomEvent("grid:changed"));
}

/** The focused element may be gone with the rows. */
function keepFocus() {
  const grid = document.querySelector("#results [data-grid]");
  const it = document.activeElement;
  if (grid && (it === document.body || !it?.checkVisibility())) enter(current(grid));
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest?.("#selection.selection-bar, #part-dialog #deletion");
  if (!form || (form.id === "selection" && !event.submitter?.matches("[data-delete]"))) return;
  if (form.elements.scope.value === "query") return;
  event.preventDefault();
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
