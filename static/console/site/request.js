// The only module that talks to the server. htmx asks through it too, and so do ordinary forms (page_form.js): whatever
// goes wrong, the page and what was typed in it stay. A user who has to sign in does so in a dialog, and the request is
// sent again; without an answer it waits for Retry; a refusal is shown as a toast.
import { pageSignal } from "./on.js";

const SIGN_IN = "X-Tablero-Sign-In"; // where to sign in, or to confirm one's identity
const RENEWAL = "X-Tablero-Token"; // the form was made before a sign-in
// not asked for by the user, so no dialog to sign in takes the keyboard for it: the user's next request opens one
const IN_BACKGROUND = { isBackground: true };
const PROBLEM = "X-Tablero-Problem"; // the answer is a message, not a part of the page

/** Functions for requests without a proper answer: `signIn` and `renew` by sign_in.js, `wait`, `isWaiting` and
 * `refuse` by trouble.js. */
export const recovery = {};

let token = ""; // the CSRF token, once it is not the one that the page came with

/** Put a new CSRF token into the page and into every request from now on. */
export function adoptToken(renewed) {
  token = renewed;
  document.body.setAttribute("hx-headers:inherited", JSON.stringify({ "x-csrftoken": renewed }));
  for (const field of document.querySelectorAll('[name="csrfmiddlewaretoken"]')) field.value = renewed;
  for (const element of document.querySelectorAll("[data-token]")) element.dataset.token = renewed;
}

/** The answer to a request that was heard, or an AbortError for one that was given up; both need no further words. */
export async function request(address, options = {}) {
  const left = pageSignal(); // those who asked go with their page
  for (let isRenewed = false; ; ) {
    const answer = await attempt(address, options, left);
    if (left.aborted) throw givenUp();
    if (!answer) continue;
    if (answer.headers.has(SIGN_IN) && options.isBackground) throw givenUp();
    if (answer.headers.has(SIGN_IN)) await recovery.signIn(answer.headers.get(SIGN_IN), options.signal);
    else if (answer.headers.has(RENEWAL) && !isRenewed) {
      await recovery.renew();
      isRenewed = true;
    } else if (answer.headers.has(PROBLEM)) {
      const text = await answer.text();
      if (answer.status < 500) throw recovery.refuse(text);
      await recovery.wait(options, text, answer.status === 500);
    } else return answer;
  }
}

let changing = 0; // requests that may change something and have no answer yet

/** Whether a page that is asked for now may lack the latest change of the user. */
export const isChanging = () => changing > 0;

async function attempt(address, options, left) {
  const { signal, body } = options;
  const headers = new Headers(options.headers);
  headers.set("X-Requested-With", "fetch");
  headers.set("X-Tablero-Zone", document.documentElement.dataset.zone); // times in parts agree with the page's
  if (token && headers.has("X-CSRFToken")) headers.set("X-CSRFToken", token);
  if (token && body?.has?.("csrfmiddlewaretoken")) body.set("csrfmiddlewaretoken", token);
  // a signal that has timed out has had its say: Retry starts without it
  const isSpent = signal?.aborted && signal.reason === "timeout";
  // a change reaches the server also if another page takes the place of this one
  const isChange = options.method === "POST" && !options.isBackground;
  const ends = [signal && !isSpent && signal, !isChange && left].filter(Boolean);
  changing += isChange;
  try {
    return await fetch(address, { ...options, headers, signal: AbortSignal.any(ends) });
  } catch (error) {
    if (left.aborted || (signal?.aborted && signal.reason !== "timeout")) throw givenUp();
    if (!(error instanceof TypeError) && error !== "timeout") throw error;
    if (options.isBackground && options.method === "POST") throw givenUp(); // not the user's, who would not press Retry for it
    await recovery.wait(options);
    return null;
  } finally {
    changing -= isChange;
  }
}

/** The reason of a request whose answer is no longer wanted. */
export function givenUp() {
  return new DOMException("Given up.", "AbortError");
}

/** The answer to a request as it came, or a TypeError without one. */
export function plainRequest(address, options) {
  return fetch(address, options);
}

/** The document in an answer. */
export async function read(answer) {
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** The answer as a document; nothing in it runs or loads before it is put into the page; `signal` aborts. */
export function get(address, signal) {
  return documentOf(address, { signal });
}

/** As get, for a page that refreshes itself: toasts are left for the next page. */
export function refresh(address) {
  return documentOf(address, IN_BACKGROUND, { "X-Tablero-Refresh": "true" });
}

/** As get, with the content of a form. */
export function post(address, body, signal) {
  return documentOf(address, { method: "POST", body, signal });
}

/** As post, for checks while the user types. */
export function postInBackground(address, body, signal) {
  return documentOf(address, { method: "POST", body, signal, ...IN_BACKGROUND });
}

/** The JSON of the answer; where it failed, rejected with the `error` in it. */
export async function json(address, options) {
  const answer = await request(address, { ...options, headers: { Accept: "application/json" } });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

async function documentOf(address, options, more = {}) {
  const answer = await request(address, { ...options, headers: { "HX-Request": "true", ...more } });
  const { status, redirected: isRedirected, headers } = answer;
  return { status, isRedirected, redirect: headers.get("HX-Redirect"), found: await read(answer) };
}

/** Put the toasts of an answer into the page's; Undo comes back to this page. */
export function announce(found) {
  const region = document.getElementById("toasts");
  for (const toasts of found.querySelectorAll('[hx-swap-oob="beforeend:#toasts"]')) {
    for (const next of toasts.querySelectorAll('[name="next"]')) next.value = location.pathname + location.search;
    region.append(...toasts.children);
  }
}

/** The message of an answer without the requested part. */
export function explain(found, status = "") {
  return found.querySelector("h1")?.textContent ?? String(status);
}

/** Load the styles and scripts of another document that this one does not have; resolves when they are here. */
export async function loadHead(found) {
  const present = new Set([...document.querySelectorAll("head > link, script")].map((part) => part.src ?? part.href));
  const awaited = [];
  for (const part of found.querySelectorAll("link[rel=stylesheet], script[src]")) {
    if (present.has(part.src ?? part.href)) continue;
    const copy = document.createElement(part.localName); // a script of another document does not run
    for (const { name, value } of part.attributes) copy.setAttribute(name, value);
    awaited.push(new Promise((done, fail) => Object.assign(copy, { onload: done, onerror: fail })));
    document.head.append(copy);
  }
  await Promise.all(awaited);
}

// the newer of two requests for one part of a page is shown; one that may change something is never given up

const filling = new Map(); // the part of the page that each request fills

document.addEventListener("htmx:config:request", (event) => {
  const { ctx } = event.detail;
  const earlier = [...filling.keys()].filter((it) => filling.get(it) === ctx.target);
  if (earlier.length && ctx.sourceEvent.type === "every") return event.preventDefault(); // the next look is soon
  for (const { request } of earlier) if (request.method === "GET") request.abort();
});
document.addEventListener("htmx:finally:request", ({ detail }) => filling.delete(detail.ctx));

document.addEventListener("htmx:before:request", (event) => {
  const { ctx } = event.detail;
  ctx.fetch = request;
  // the answer to text typed before the page was left would change the address of the next one
  if (ctx.sourceElement.isConnected) filling.set(ctx, ctx.target);
  else event.preventDefault();
});
