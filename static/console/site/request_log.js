// The request log: a request opens beside the list, ?open= says which one; arrows go to the one before and after it.
import "./histogram.js";
import { bind } from "./commands.js";
import { on, onPage, onSwap } from "./on.js";
import { isModalOpen, outsideFields } from "./dialog.js";
import { pastedRequestId } from "./request_id.js";
import { isPlain } from "./shortcuts.js";

let drawer = null; // the page's drawer, if it has one
let coming = null; // the row that one stepped to, until it is here

const shown = () => (!drawer || drawer.hidden ? undefined : drawer.querySelector("[data-request]")?.dataset.request);
const rows = () => [...document.querySelectorAll("tr[data-request]")];
const linkOf = (row) => row?.querySelector("th a");

function beside(step) {
  const all = rows();
  const at = all.findIndex((row) => (coming?.isConnected ? row === coming : row.dataset.request === shown()));
  return at < 0 ? undefined : all[at + step];
}

/** Mark the row of the open request. */
function mark() {
  const open = shown();
  for (const row of rows()) row.toggleAttribute("data-opened", row.dataset.request === open);
  for (const button of drawer?.querySelectorAll("[data-request-step]") ?? []) button.disabled = !beside(Number(button.dataset.requestStep));
}

function remember(id) {
  const address = new URL(location.href);
  if (id) address.searchParams.set("open", id);
  else address.searchParams.delete("open");
  history.replaceState(history.state, "", address);
}

/** The later of two that are opened is shown: the drawer's hx-sync ends the earlier. */
async function open(row) {
  const link = linkOf(row);
  if (!link) return;
  coming = row;
  await htmx.ajax("GET", link.href, { source: drawer, target: drawer });
  if (coming === row) coming = null;
}

function close() {
  const row = rows().find(({ dataset }) => dataset.request === shown());
  htmx.trigger(drawer, "htmx:abort"); // an answer on its way would come too late
  coming = null;
  drawer.hidden = true;
  drawer.replaceChildren();
  remember("");
  mark();
  linkOf(row)?.focus();
}

function go(step) {
  const row = beside(step);
  if (!row) return;
  row.scrollIntoView({ block: "nearest" });
  open(row);
}

function show() {
  if (!drawer.firstElementChild) return;
  const isNew = drawer.hidden;
  drawer.hidden = false;
  drawer.scrollTop = 0;
  remember(shown());
  if (isNew || document.activeElement === document.body) drawer.querySelector("[data-focus]")?.focus({ preventScroll: true });
  mark();
}

on("click", "tr[data-request]", (row, event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  const other = event.target.closest("a, button");
  if (!isPlain || (other && other !== linkOf(row)) || getSelection()?.type === "Range") return;
  event.preventDefault();
  open(row);
});
on("click", "[data-request-close]", close);
on("click", "[data-request-step]", ({ dataset }) => go(Number(dataset.requestStep)));
on("change", ".request-filter select", ({ form }, event) => {
  // another time takes the place of a selected range
  if (event.target.name === "span" && event.target.value) form.elements.since.value = form.elements.until.value = "";
  form.requestSubmit();
});

on("paste", "#q", (field, event) => {
  const id = pastedRequestId(event);
  if (!id) return;
  event.preventDefault();
  field.value = id;
  field.form.requestSubmit();
});

const openRequest = (event) => !isModalOpen() && shown() && outsideFields(event);
const listedRequest = ({ target }) => !shown() && target.closest?.("tr[data-request]");
const besideRequest = (event) => openRequest(event) && (event.altKey || isPlain(event));
bind(openRequest, { Escape: () => close() });
bind(besideRequest, { "request.previous": () => go(-1), "request.next": () => go(1) });
bind(listedRequest, {
  ArrowUp: (row) => linkOf(row.previousElementSibling)?.focus(),
  ArrowDown: (row) => linkOf(row.nextElementSibling)?.focus(),
});

onSwap(mark);
onPage((left) => {
  coming = null;
  drawer = document.getElementById("request-drawer");
  if (!drawer) return;
  // beside main, which is a container, and in some browsers what is fixed inside one is fixed to it
  document.querySelector(".layout")?.after(drawer);
  const filling = new MutationObserver(show);
  filling.observe(drawer, { childList: true });
  left.addEventListener("abort", () => filling.disconnect());
  show();
});
