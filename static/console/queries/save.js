// "Save this query…": the form of its page, in a dialog over the grid.
import { onClick, onSubmit } from "../site/on.js";
import { close, nextPart, show } from "../site/part_dialog.js";
import { explain, get, read, request } from "../site/request.js";
import { notify } from "../site/toast.js";

const AS_PAGE = { "HX-Request": "true", "HX-Request-Type": "full" }; // it leads on to the next page

function present(found) {
  const form = found.getElementById("saved-query");
  if (form) show(form.dataset.title, form, form.querySelector("[data-error-summary], [autofocus]"));
  return form;
}

onClick("a[data-save-query]", async ({ href }) => {
  document.querySelector("#saved-menu:popover-open")?.hidePopover();
  const { found } = await get(href, nextPart());
  if (!present(found)) location.assign(href);
});
onClick("#part-dialog #saved-query [data-cancel]", close);
onSubmit("#part-dialog #saved-query", async (form, submitter) => {
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  try {
    const answer = await request(form.getAttribute("action"), { method: "POST", body: new FormData(form, submitter), headers: AS_PAGE });
    const grid = answer.headers.get("HX-Redirect");
    if (grid) return location.assign(grid);
    const found = await read(answer);
    if (!present(found)) notify(explain(found));
  } finally {
    form.ariaBusy = null;
  }
});
