// Pages of an account take each other's place in one document, so that nothing is loaded or set up again. The address says
// all that a page is; how far it was scrolled and what had the focus is kept with its entry of the history. Browsers without
// the Navigation API, and pages of another frame, user, language or version, load as pages do.
import { turnPage } from "./on.js";
import { isChanging, loadHead, plainRequest, read } from "./request.js";
import { anyDirty, guarded, isChanged, setSent, wasSent } from "./unsaved.js";

const KEPT = ["toasts", "sign-in", "palette", "page-title"]; // parts of the document, not of a page
const FRAME = ".layout > #main";
const REGIONS = [".sidebar-scroll", ".grid-region"]; // parts that scroll beside the page itself
const FIELDS = "#main :is(input:not([type=hidden], [type=password], [type=file]), select, textarea)[name]:not([autocomplete=off])";
const PLACES = ".brand, .sidebar, .crumbs, .table-tabs, .page-head .tabs, #tables tbody, .home"; // where a link leads to another page
const PATIENCE = 3000; // milliseconds for which a page that is about to go takes no clicks
const PRESS = 1000; // milliseconds for which a page is kept for the link that is pressed
const ADDRESSES = /^\/ui\/a\//;

let asking = null; // for the page that comes next

function takes({ info, canIntercept, hashChange, downloadRequest, formData, navigationType, destination, sourceElement }) {
  // the browser itself asks users who discard what they typed
  if (sourceElement?.closest?.("[data-look], [data-native]")) return false;
  if (info?.isNative || !canIntercept || hashChange || downloadRequest !== null || formData || navigationType === "reload") return false;
  // an address that a module writes belongs to the page that is shown
  if (destination.sameDocument !== (navigationType === "traverse")) return false;
  return canFollow(destination.url);
}

/** Whether the page at an address can take the place of this one. */
const canFollow = (url) => document.querySelector(FRAME) && [url, location.href].every(isOfAccount);

const isOfAccount = (url) => ADDRESSES.test(new URL(url, location).pathname);

window.navigation?.addEventListener("navigate", (event) => {
  if (event.info?.turn) return event.intercept({ ...OURS, handler: async () => event.info.turn() });
  if (["push", "traverse"].includes(event.navigationType)) navigation.updateCurrentEntry({ state: placeOnPage() });
  if (!takes(event)) return;
  dispatchEvent(new CustomEvent("tablero:leaving"));
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
  if (kind === "traverse") event.intercept({ ...OURS, handler: () => goBack(destination) });
  else if (event.cancelable) {
    event.preventDefault();
    go(destination.url, kind);
  }
});

const OURS = { scroll: "manual", focusReset: "manual" };

/** Whether another page is about to take the place of this one. */
export const isTurning = () => document.documentElement.hasAttribute("data-turning");

/** While the next page is on its way, what is pressed on this one would be lost. */
function hold(isHeld) {
  clearTimeout(releasing);
  document.documentElement.toggleAttribute("data-turning", isHeld);
  const main = document.getElementById("main");
  main.ariaBusy = isHeld ? "true" : null;
  main.style.pointerEvents = isHeld ? "none" : "";
  if (isHeld) releasing = setTimeout(() => (main.style.pointerEvents = ""), PATIENCE);
}

let releasing;

// A press of the mouse nearly always becomes a click, after some 80 ms: the page is asked for when it begins. One that
// loads as a document is asked for by browsers with speculation rules (pressed.rules), which forget it with the mark.

let pressed = null; // the page of the link under the mouse

document.addEventListener("pointerdown", ({ target, pointerType, button, ctrlKey, metaKey, shiftKey, altKey }) => {
  pressed?.own.abort();
  pressed = null;
  const link = target.closest?.("a[href]");
  const isClick = pointerType === "mouse" && button === 0 && !(ctrlKey || metaKey || shiftKey || altKey);
  if (!isClick || !link?.closest(PLACES) || anyDirty() || isChanging()) return;
  if (window.navigation && canFollow(link.href)) pressed = askFor(link.href);
  else {
    link.dataset.pressed = "";
    setTimeout(() => delete link.dataset.pressed, PRESS);
  }
});

/** Ask for a page; `own` gives it up. */
function askFor(address) {
  const own = new AbortController();
  return { address, own, since: performance.now(), page: fetchPage(address, own.signal) };
}

/** The page at an address, asked for when its link was pressed, or now. */
function takePressed(address) {
  const isReady = pressed?.address === address && performance.now() - pressed.since < PRESS;
  const it = isReady ? pressed : askFor(address);
  pressed = null;
  return it;
}

/** Show the page at an address, also if that is a part of the page that is shown, which is drawn again. */
export function visit(address) {
  const { href, hash } = new URL(address, location);
  if (!hash || href.split("#")[0] !== location.href.split("#")[0]) return location.assign(href);
  if (window.navigation && canFollow(href)) return go(href, "replace");
  history.replaceState(history.state, "", href);
  location.reload();
}

/** Another page: its address is shown when it has come. */
async function go(address, history) {
  asking?.abort();
  const { own, page } = takePressed(address);
  const { signal } = (asking = own);
  hold(true);
  try {
    const { found, url } = await page;
    if (signal.aborted) return;
    if (!found) return void navigation.navigate(address, { history, info: { isNative: true } });
    await loadHead(found);
    if (signal.aborted) return;
    const turn = () => show(found, { hash: new URL(url).hash });
    await navigation.navigate(url, { history, info: { turn } }).finished;
  } finally {
    if (asking === own) hold(false);
  }
}

/**
 * A page that was shown before, as it was left. A module that writes the address again, as htmx does, ends
 * the navigation of the browser: the address is that of the page already, so that it is still shown.
 */
async function goBack(destination) {
  asking?.abort();
  const own = (asking = new AbortController());
  const isOver = () => own.signal.aborted || location.href !== destination.url;
  hold(true);
  try {
    const { found } = await fetchPage(destination.url, own.signal);
    if (isOver()) return;
    if (!found) return location.reload();
    await loadHead(found);
    if (!isOver()) show(found, { place: destination.getState() });
  } finally {
    if (asking === own) hold(false);
  }
}

/** The document at an address, and where it was found; nothing if it cannot take the place of this one. */
async function fetchPage(address, signal) {
  try {
    const answer = await plainRequest(address, { signal });
    if (!answer.ok || !answer.headers.get("Content-Type")?.startsWith("text/html")) {
      answer.body?.cancel();
      return {};
    }
    const found = await read(answer);
    const url = answer.redirected ? answer.url : address;
    return isLike(found) && isOfAccount(url) ? { found, url } : {};
  } catch {
    return {}; // the browser says what is wrong
  }
}

function isLike(found) {
  const marks = (it) => [it.documentElement.lang, it.documentElement.dataset.user, it.querySelector("script[type=module]")?.src].join(" ");
  return found.querySelector(FRAME) && marks(found) === marks(document);
}

function show(found, { place = null, hash = "" }) {
  const [tables] = scrolledRegions();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  turnPage(() => {
    document.title = found.title;
    for (const name of ["documentElement", "body"]) copyAttributes(found[name], document[name]);
    const toasts = document.getElementById("toasts");
    toasts.replaceChildren(...found.getElementById("toasts").children);
    useStyles(found);
    exchange(found.body);
    scroll([tables]); // the sidebar keeps its tables where they are
    if (place) fill(place.fields);
    if (place?.focus.key !== undefined) focusable(place.focus)?.setAttribute("tabindex", "0"); // the grid's own, once it is set up
    if (!place) scrollToStart(hash);
  });
  setSent(false);
  window.htmx.process(document.body);
  document.body.dispatchEvent(new CustomEvent("htmx:after:swap", { bubbles: true }));
  if (place) restore(place);
  else focusStart();
  announce();
}

/** As a screen reader does for a page that was loaded. */
function announce() {
  let voice = document.getElementById("page-title");
  if (!voice) {
    voice = Object.assign(document.createElement("div"), { id: "page-title", className: "visually-hidden", role: "status" });
    document.body.append(voice);
  }
  voice.textContent = document.title;
}

/** Apply the styles of the page, and no others that were loaded. */
function useStyles(found) {
  const wanted = new Set([...found.querySelectorAll("link[rel=stylesheet]")].map(({ href }) => href));
  for (const { href, sheet } of document.querySelectorAll("head > link[rel=stylesheet]")) sheet.disabled = !wanted.has(href);
}

function copyAttributes(from, to) {
  for (const { name } of [...to.attributes]) if (!from.hasAttribute(name)) to.removeAttribute(name);
  for (const { name, value } of from.attributes) if (to.getAttribute(name) !== value) to.setAttribute(name, value);
}

/** All parts of the body but those that are kept, which stay where they are. */
function exchange(body) {
  const kept = new Map(KEPT.map((id) => [id, document.getElementById(id)]).filter(([id, it]) => it && (id === "page-title" || body.querySelector(`:scope > #${id}`))));
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
function scrollToStart(hash) {
  const target = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  if (target) target.scrollIntoView({ behavior: "instant" });
  else scrollTo({ left: 0, top: 0, behavior: "instant" });
}

function focusStart() {
  if (document.activeElement !== document.body) return;
  const first = [...document.querySelectorAll("#main [autofocus]")].find((it) => it.checkVisibility());
  (first ?? document.getElementById("main")).focus({ preventScroll: true });
}

// how a page was left

function scrolledRegions() {
  return REGIONS.map((selector) => document.querySelector(selector)).map((it) => it && [it.scrollLeft, it.scrollTop]);
}

function placeOnPage() {
  return { page: [scrollX, scrollY], regions: scrolledRegions(), focus: describe(document.activeElement), fields: changedFields() };
}

/** Typed and chosen values, as browsers keep them; a guarded form has them in its draft. */
function changedFields() {
  return [...document.querySelectorAll(FIELDS)].flatMap((field, at) => (isChanged(field) && !field.closest("[data-guard]") ? [[at, keyOf(field), field.checked ?? null, field.value]] : []));
}

const keyOf = (field) => `${field.name} ${field.type} ${field.matches("[type=checkbox], [type=radio]") ? field.value : ""}`;

/** Only where the same field is in the same place. */
function fill(fields) {
  const all = document.querySelectorAll(FIELDS);
  for (const [at, key, checked, value] of fields) {
    if (!all[at] || keyOf(all[at]) !== key) continue;
    if (checked === null) all[at].value = value;
    else all[at].checked = checked;
  }
}

function scroll(regions) {
  regions.forEach((it, at) => it && document.querySelector(REGIONS[at])?.scrollTo({ left: it[0], top: it[1], behavior: "instant" }));
}

function restore({ page, regions, focus }) {
  scroll(regions);
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
