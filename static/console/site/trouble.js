// Requests without an answer wait here. One message says so, with Retry; it goes when the server answers again.
import { onPage } from "./on.js";
import { givenUp, plainRequest, recovery } from "./request.js";
import { isDirty } from "./unsaved.js";

const PROBE_AFTER = 5000; // milliseconds between two looks whether the server is back
const PROBE = "/ui/healthz";
const waiting = new Set(); // { signal, isSafe, isLost, retry, giveUp }
let message = null;
let probing = 0;

// signing in again is seldom needed, and comes when it is
for (const name of ["signIn", "renew"])
  recovery[name] = async (...values) => {
    await import("./sign_in.js");
    return recovery[name](...values);
  };

// to other tabs that wait for a sign-in, as at a provider
if (document.documentElement.dataset.user) new BroadcastChannel("tablero").postMessage("signed in");

/** Resolves when the request is to be sent again; rejects when it is given up. `text`: what the server said, if it did;
 * `isFinal`: it did so as its answer, which a working connection does not change. */
recovery.wait = ({ method = "GET", signal }, text = "", isFinal = false) => {
  document.dispatchEvent(new CustomEvent("tablero:unsent"));
  return new Promise((resolve, reject) => {
    const one = {
      signal,
      isSafe: method.toUpperCase() === "GET",
      isLost: !isFinal,
      retry: () => settle(one, resolve),
      giveUp: () => settle(one, () => reject(givenUp())),
    };
    signal?.addEventListener("abort", () => signal.reason !== "timeout" && one.giveUp());
    waiting.add(one);
    markRoot();
    show(text);
    if (one.isLost) probe();
  });
};

/** Whether the request of this signal waits here, without an answer. */
recovery.isWaiting = (signal) => [...waiting].some((one) => one.signal === signal);

function settle(one, goOn) {
  if (!waiting.delete(one)) return;
  markRoot();
  if (waiting.size === 0) hide();
  goOn();
}

/** While requests wait for the user, nothing spins. */
function markRoot() {
  document.documentElement.toggleAttribute("data-unsent", waiting.size > 0);
}

function retryAll() {
  for (const one of [...waiting]) one.retry();
}

function giveUpAll() {
  for (const one of [...waiting]) one.giveUp();
}

function show(text) {
  message?.remove();
  message = text ? parsed(text) : fill("unreachable");
  message.querySelector("[data-dismiss]").before(fill("retry"));
  message.classList.add("trouble");
  place();
}

/** Where messages are seen: beside a modal dialog nothing can be pressed. */
function region() {
  return [...document.querySelectorAll("dialog:modal")].at(-1) ?? document.getElementById("toasts");
}

function place() {
  if (message) region().append(message);
}

function hide() {
  message?.remove();
  message = null;
  clearTimeout(probing);
  probing = 0;
}

function fill(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

function parsed(text) {
  return new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
}

/** The message of the server, once; returns the error for those who asked. */
recovery.refuse = (text) => {
  document.dispatchEvent(new CustomEvent("tablero:unsent"));
  const toast = parsed(text);
  if (![...document.forms].some(isDirty)) toast.querySelector("[data-typed]")?.remove();
  for (const old of document.querySelectorAll(".problem:not(.trouble)"))
    if (old.textContent === toast.textContent) old.remove();
  region().append(toast);
  return givenUp();
};

// the server may be back: what only reads goes on by itself, what writes may have been done and waits for Retry

function probe() {
  probing ||= setTimeout(look, PROBE_AFTER);
}

async function look() {
  probing = 0;
  if (!message) return;
  const answer = await plainRequest(PROBE, { cache: "no-store" }).catch(() => null);
  if (answer?.ok) recover();
  else if (message) probe();
}

function recover() {
  for (const one of [...waiting]) if (one.isSafe && one.isLost) one.retry();
  if (message && [...waiting].some((one) => one.isLost)) {
    message.remove();
    message = null;
    show();
    message.replaceChildren(...fill("reachable").childNodes, ...message.querySelectorAll("button"));
  }
}

// a request that was given up needs no further words
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") event.preventDefault();
});
addEventListener("online", recover);
onPage((left) => left.addEventListener("abort", giveUpAll));
document.addEventListener("close", place, true);

document.addEventListener("click", (event) => {
  const problem = event.target.closest?.(".problem");
  if (event.target.closest?.("[data-retry]")) retryAll();
  else if (problem && event.target.closest("[data-dismiss]")) {
    if (problem === message) giveUpAll();
    else problem.remove();
  }
});

// pressing Save again sends the form's present values
document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (![...waiting].some((one) => !one.isSafe) || form.getAttribute("method") !== "post") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    giveUpAll();
    const { submitter } = event;
    setTimeout(() => form.isConnected && form.requestSubmit(submitter));
  },
  true,
);
