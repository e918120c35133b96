// The one stream of a page of a table, since a browser opens few streams to a server. Others hear its changes by the events
// table:open and table:change; those that have events of their own in it hear table:connect, with its address, table:source
// and table:disconnect.
import { onPage } from "../site/on.js";
import { refresh } from "../site/request.js";

const LONGEST = 30_000; // ms between two attempts to connect

const place = () => document.getElementById("table-frame");
const results = () => document.getElementById("results");
const drawer = () => document.getElementById("drawer");

let source = null;
let token = "";
let attempts = 0;
let retry;
let isRefused = false; // and why was asked

const tell = (kind, detail) => document.dispatchEvent(new CustomEvent(kind, { detail }));

/** The entity that this tab shows, in the drawer or as a page; undefined: none. */
export function shownEntity() {
  const opened = drawer();
  return opened && !opened.hidden ? opened.querySelector("[data-entity]") : document.querySelector("main > [data-entity]");
}

function connect() {
  if (source || !place() || document.hidden) return;
  const address = new URL(place().dataset.stream, location);
  if (token) address.searchParams.set("after", token);
  tell("table:connect", address);
  source = new EventSource(address);
  tell("table:source", source);
  source.addEventListener("open", () => {
    attempts = 0;
    isRefused = false;
    tell("table:open", { isWhole: Boolean(token) }); // without a token, what happened before is not told
  });
  source.addEventListener("message", ({ data, lastEventId }) => {
    token = lastEventId;
    tell("table:change", JSON.parse(data));
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) {
      token = ""; // it may have expired
      // a message says why the page cannot be had any more, as of a table that was deleted; a stream does not tell
      if (!isRefused) refresh(location.href).catch(() => {});
      isRefused = true;
    }
    disconnect();
    const pause = Math.min(LONGEST, 1000 * 2 ** attempts++);
    retry = setTimeout(connect, pause * (0.5 + Math.random() / 2));
  });
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
  tell("table:disconnect");
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
onPage((left) => {
  token = results()?.dataset.token ?? "";
  attempts = 0;
  isRefused = false;
  left.addEventListener("abort", disconnect);
  // after the modules that listen
  queueMicrotask(connect);
});
