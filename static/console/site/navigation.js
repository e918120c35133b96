// Pages of the console take each other's place in one document, so that nothing is loaded or set up again. The address says
// all that a page is; how far it was scrolled and what had the focus is kept with its entry of the history. Browsers without
// the Navigation API, and pages of another frame, user or version, load as pages do.
import { turnPage } from "./on.js";
import { loadHead, plainRequest, read } from "./request.js";
import { anyDirty, guarded, setSent, wasSent } from "./unsaved.js";

const KEPT = ["toasts", "sign-in", "palette"]; // of the document, not of a page
const FRAME = ".layout > #main";
const REGIONS = ["#sidebar", ".grid-region"]; // what scrolls beside the page itself
const PATIENCE = 3000; // milliseconds for which a page that is about to go takes no clicks
const ADDRESSES = /^\/ui\/(?!static\/|api\/|login\/|logout\/|setup\/|join\/)/;

let asking = null; // for the page that comes next

/** Load a page as browsers do. */
let isNative = false;
function loadNatively(address) {
  isNative = true;
  location.assign(address);
}

function takes({ canIntercept, hashChange, downloadRequest, formData, navigationType, destination, sourceElement }) {
  // who discards what was typed is asked by the browser
  if (sourceElement?.matches?.("[data-look]")) return false;
  if (isNative || !canIntercept || hashChange || downloadRequest !== null || formData || navigationType === "reload") return false;
  // what a module writes into the address is of the page that is shown
  if (destination.sameDocument !== (navigationType === "traverse")) return false;
  return document.querySelector(FRAME) && ADDRESSES.test(new URL(destination.url).pathname);
}

window.navigation?.addEventListener("navigate", (event) => {
  if (event.info?.turn) return event.intercept({ ...OURS, handler: async () => event.info.turn() });
  if (event.navigationType !== "reload") navigation.updateCurrentEntry({ state: placeOnPage() });
  if (!takes(event)) return;
  const { navigationType: kind, destination } = event;
  if (kind === "traverse") event.stopImmediatePropagation(); // htmx would show its own entries in another way
  if (anyDirty() && !wasSent() && event.cancelable) {
    event.preventDefault();
    return guarded(() => {
      for (const form of document.querySelectorAll("form[data-guard]")) form.removeAttribute("data-guard");
      if (kind === "traverse") navigation.traverseTo(destination.key);
      else navigation.navigate(destination.url, { history: kind });
    });
  }
  if (kind === "traverse") event.intercept({ ...OURS, handler: () => goBack(destination, event.signal) });
  else if (event.cancelable) {
    event.preventDefault();
    go(destination.url, kind);
  }
});

const OURS = { scroll: "manual", focusReset: "manual" };

/** While the next page is on its way, what is pressed on this one would be lost. */
function hold(isHeld) {
  clearTimeout(releasing);
  const main = document.getElementById("main");
  main.ariaBusy = isHeld ? "true" : null;
  main.style.pointerEvents = isHeld ? "none" : "";
  if (isHeld) releasing = setTimeout(hold, PATIENCE, false);
}

let releasing;

/** Another page: its address is shown when it has come. */
async function go(address, history) {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  hold(true);
  try {
    const { found, url } = await fetchPage(address, signal);
    if (signal.aborted) return;
    if (!found) return loadNatively(address);
    await loadHead(found);
    if (signal.aborted) return;
    const turn = () => {
      show(found);
      start(new URL(url).hash);
    };
    await navigation.navigate(url, { history, info: { turn } }).finished;
  } finally {
    if (asking?.signal === signal) hold(false);
  }
}

/** A page that was shown before, as it was left. */
async function goBack(destination, signal) {
  asking?.abort();
  asking = null;
  hold(true);
  try {
    const { found } = await fetchPage(destination.url, signal);
    if (signal.aborted) return;
    if (!found) return location.reload();
    await loadHead(found);
    if (!signal.aborted) show(found, destination.getState());
  } finally {
    if (!signal.aborted) hold(false);
  }
}

/** The document at an address, and where it was found; nothing if it cannot take the place of this one. */
async function fetchPage(address, signal) {
  try {
    const answer = await plainRequest(address, { signal });
    if (!answer.headers.get("Content-Type")?.startsWith("text/html")) {
      answer.body?.cancel();
      return {};
    }
    const found = await read(answer);
    const url = answer.redirected ? answer.url : address;
    return isLike(found) ? { found, url } : {};
  } catch {
    return {}; // the browser says what is wrong
  }
}

function isLike(found) {
  const marks = (it) => [it.documentElement.lang, it.documentElement.dataset.user, it.querySelector("script[type=module]")?.src].join(" ");
  return found.querySelector(FRAME) && marks(found) === marks(document);
}

function show(found, place = null) {
  const sidebar = document.getElementById("sidebar").scrollTop;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  turnPage(() => {
    document.title = found.title;
    for (const name of ["documentElement", "body"]) copyAttributes(found[name], document[name]);
    const toasts = document.getElementById("toasts");
    for (const toast of [...toasts.children]) if (!toast.matches(".trouble")) toast.remove();
    toasts.append(...found.getElementById("toasts").children);
    exchange(found.body);
    document.getElementById("sidebar").scrollTop = sidebar;
    if (place?.focus.key !== undefined) focusable(place.focus)?.setAttribute("tabindex", "0"); // the grid's own, once it is set up
  });
  setSent(false);
  window.htmx.process(document.body);
  document.body.dispatchEvent(new CustomEvent("htmx:after:swap", { bubbles: true }));
  if (place) restore(place);
}

function copyAttributes(from, to) {
  for (const { name } of [...to.attributes]) if (!from.hasAttribute(name)) to.removeAttribute(name);
  for (const { name, value } of from.attributes) if (to.getAttribute(name) !== value) to.setAttribute(name, value);
}

/** All parts of the body but those that are kept, which stay where they are. */
function exchange(body) {
  const kept = new Map(KEPT.map((id) => [id, document.getElementById(id)]).filter(([id, it]) => it && body.querySelector(`:scope > #${id}`)));
  for (const child of [...document.body.childNodes]) if (!kept.has(child.id)) child.remove();
  let next = document.body.firstChild;
  for (const child of [...body.childNodes]) {
    const stays = kept.get(child.id);
    if (stays) {
      copyAttributes(child, stays);
      next = stays.nextSibling;
    } else document.body.insertBefore(document.adoptNode(child), next);
  }
}

/** Where a page that was never shown begins. */
function start(hash) {
  const target = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
  if (document.activeElement !== document.body) return;
  const first = [...document.querySelectorAll("#main [autofocus]")].find((it) => it.checkVisibility());
  (first ?? document.getElementById("main")).focus({ preventScroll: true });
}

// how a page was left

function placeOnPage() {
  const regions = REGIONS.map((selector) => document.querySelector(selector)).map((it) => it && [it.scrollLeft, it.scrollTop]);
  return { page: [scrollX, scrollY], regions, focus: describe(document.activeElement) };
}

function restore({ page, regions, focus }) {
  REGIONS.forEach((selector, at) => regions[at] && document.querySelector(selector)?.scrollTo({ left: regions[at][0], top: regions[at][1], behavior: "instant" }));
  scrollTo({ left: page[0], top: page[1], behavior: "instant" });
  focusable(focus)?.focus({ preventScroll: true });
}

function describe(element) {
  const cell = element?.closest?.("tr[data-key] > *");
  if (cell) return { key: cell.parentElement.dataset.key, column: cell.cellIndex };
  const link = element?.getAttribute?.("href");
  return link ? { link } : { id: element?.closest?.("[id]")?.id };
}

function focusable({ key, column, id, link }) {
  if (key !== undefined) return document.querySelector(`tr[data-key="${CSS.escape(key)}"]`)?.cells[column];
  // an editor stands in the place of a field
  if (id) return document.getElementById(id) ?? document.getElementById(id.replace(/-editor$/, ""));
  return link && document.querySelector(`a[href="${CSS.escape(link)}"]`);
}
