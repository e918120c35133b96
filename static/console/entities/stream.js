// The one stream of a page of a table: its changes, who else has it open, and what this tab shows. Others hear it by the
// events table:open, table:change and table:people, since a browser opens few streams to a server.
import { onPage, onSwap } from "../site/on.js";
import { postInBackground } from "../site/request.js";

const LONGEST = 30_000; // ms between two attempts to connect

const place = () => document.getElementById("presence");
const results = () => document.getElementById("results");
const drawer = () => document.getElementById("drawer");

/** The name of this tab, as a UUID; crypto.randomUUID needs HTTPS. */
function makeName() {
  const digits = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const tab = makeName();
let source = null;
let token = "";
let attempts = 0;
let retry;
let told = ""; // the entity that the server knows of
let isKnown = false; // whether the server knows this tab

const tell = (kind, detail) => document.dispatchEvent(new CustomEvent(kind, { detail }));

/** The entity that this tab shows, in the drawer or as a page; undefined: none. */
export function shownEntity() {
  const opened = drawer();
  return opened && !opened.hidden ? opened.querySelector("[data-entity]") : document.querySelector("main > [data-entity]");
}

function connect() {
  if (source || !place() || document.hidden) return;
  const address = new URL(place().dataset.stream, location);
  told = shownEntity()?.dataset.entity ?? "";
  for (const [name, value] of Object.entries({ tab, entity: told, after: token })) if (value) address.searchParams.set(name, value);
  source = new EventSource(address);
  source.addEventListener("open", () => {
    attempts = 0;
    tell("table:open", { isWhole: Boolean(token) }); // without a token, what happened before is not told
  });
  source.addEventListener("message", ({ data, lastEventId }) => {
    token = lastEventId;
    tell("table:change", JSON.parse(data));
  });
  source.addEventListener("presence", ({ data }) => {
    tell("table:people", JSON.parse(data));
    isKnown = true;
    move(); // what was opened before
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) token = ""; // refused: it may have expired
    disconnect();
    const pause = Math.min(LONGEST, 1000 * 2 ** attempts++);
    retry = setTimeout(connect, pause * (0.5 + Math.random() / 2));
  });
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
  isKnown = false;
  tell("table:people", []);
}

/** Tell the server which entity is shown now. */
function move() {
  const now = shownEntity()?.dataset.entity ?? "";
  if (!isKnown || now === told) return;
  told = now;
  const body = new FormData();
  body.set("tab", tab);
  body.set("entity", now);
  body.set("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]").value);
  postInBackground(place().dataset.move, body).catch(() => (told = null)); // told again with the next news
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
onSwap(move);
onPage((left) => {
  token = results()?.dataset.token ?? "";
  attempts = 0;
  const filling = new MutationObserver(move);
  if (drawer()) filling.observe(drawer(), { childList: true });
  left.addEventListener("abort", () => {
    filling.disconnect();
    disconnect();
  });
  // after the modules that listen
  queueMicrotask(connect);
});
