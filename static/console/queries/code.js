// The query as code in a dialog above the grid; every link in it is a page as well.
import { on } from "../site/on.js";
import { get } from "../site/request.js";
import { nextPart, show } from "../site/part_dialog.js";

on("click", "[data-code-open], #part-dialog #code nav a", async (link, event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const { found } = await get(link.href, nextPart());
  const part = found.getElementById("code");
  if (part) show(part.dataset.title, part, part.querySelector("nav [aria-current]"));
  else location.assign(link.href);
});
