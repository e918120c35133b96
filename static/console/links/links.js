// "Copy link" puts a short link to the page, as its address has it, on the clipboard.
import { bind } from "../site/commands.js";
import { put } from "../site/copy.js";
import { outsideFields } from "../site/dialog.js";
import { on } from "../site/on.js";
import { json } from "../site/request.js";
import { notify } from "../site/toast.js";

const PAGE = "/ui/links/new/";

async function copy() {
  const body = new FormData();
  body.set("address", location.pathname + location.search);
  body.set("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]")?.value ?? "");
  try {
    const { link } = await json(PAGE, { method: "POST", body });
    await put(link);
    notify(`${document.getElementById("toasts").dataset.copied} ${link}`);
  } catch (error) {
    if (error.name !== "AbortError") notify(error.message);
  }
}

on("click", `a[href^="${PAGE}"]`, (link, event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  link.closest("dialog")?.close();
  copy();
});
bind(outsideFields, { "link.copy": () => void copy() });
