// Signing in, or confirming one's identity, in a dialog over the page; what waits for it goes on after it, once.
import { adoptToken, givenUp, loadHead, plainRequest, read, recovery } from "./request.js";

const dialog = () => document.getElementById("sign-in");
const channel = new BroadcastChannel("tablero"); // where trouble.js announces sign-ins in other tabs
const { user } = document.documentElement.dataset;
let waiting = null; // { promise, resolve, reject } of the open dialog
let isSignedIn = false; // in another tab, while a password was being typed in this one
const PAUSE = 600; // milliseconds without a key, after which typing has ended
let typedAt = -PAUSE; // when a key was last typed in a field below the dialog
let below = null; // the field below that still takes the keys

document.addEventListener("keydown", typeBelow, { capture: true });

/** Send keys that a user types without looking to the text, not to a password. */
function typeBelow(event) {
  const isCharacter = event.key.length === 1 && !event.ctrlKey && !event.metaKey;
  const field = below ?? (!dialog()?.open && event.target.matches?.("input, textarea") && event.target);
  if (!field || !(isCharacter || event.key === "Backspace")) return;
  typedAt = performance.now();
  if (!below) return;
  event.preventDefault();
  event.stopPropagation();
  const { selectionStart: start, selectionEnd: end } = below;
  if (isCharacter) below.setRangeText(event.key, start, end, "end");
  else below.setRangeText("", start === end ? Math.max(0, start - 1) : start, end, "end");
  below.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

async function typingEnds() {
  for (let rest; (rest = typedAt + PAUSE - performance.now()) > 0; ) await new Promise((done) => setTimeout(done, rest));
}

/** Resolves when this user is signed in; rejects when the dialog is closed. */
recovery.signIn = (address, signal) => {
  if (signal?.aborted && signal.reason !== "timeout") return Promise.reject(givenUp());
  if (!waiting) {
    isSignedIn = false;
    waiting = Promise.withResolvers();
    open(address).catch((error) => finish(error));
  }
  const { promise } = waiting;
  // later, another sign-in may be under way
  signal?.addEventListener("abort", () => signal.reason !== "timeout" && waiting?.promise === promise && finish(givenUp()));
  return promise;
};

function finish(error) {
  const { resolve, reject } = waiting ?? {};
  waiting = below = null;
  document.dispatchEvent(new CustomEvent("tablero:unsent"));
  if (dialog().open) dialog().close();
  dialog().querySelector("[data-part]").replaceChildren();
  if (error) reject?.(error);
  else resolve?.();
}

async function open(address) {
  await take(await plainRequest(address));
}

/** Show the server's answer on the way to a sign-in: the next form, or that it is done. */
async function take(answer) {
  const found = await read(answer);
  if (isDone(answer)) return accept(found);
  const card = found.querySelector("main .card");
  if (!card) throw new TypeError("There is no form to sign in with.");
  await loadHead(found).catch(() => {}); // a password needs no scripts
  await typingEnds();
  if (waiting) await show(document.adoptNode(card));
}

function isDone(answer) {
  return new URL(answer.url).pathname === dialog().dataset.done;
}

async function show(card) {
  const heading = card.querySelector("h1");
  dialog().querySelector("h2").textContent = heading.textContent;
  dialog().querySelector("[data-kept]").hidden = card.querySelector("[data-again]") !== null;
  for (const part of [heading, card.querySelector("[data-way-out]")]) part?.remove(); // the dialog can be closed
  // the page may use the same ids
  for (const element of card.querySelectorAll("[id], [for], [aria-describedby]"))
    for (const name of ["id", "for", "aria-describedby"])
      if (element.hasAttribute(name)) element.setAttribute(name, element.getAttribute(name).replace(/[^ ]+/g, "again-$&"));
  for (const field of card.querySelectorAll("[autofocus]")) field.autofocus = false;
  const name = card.querySelector('[name="login"]');
  if (name && !name.value) name.value = user ?? "";
  dialog().querySelector("[data-part]").replaceChildren(...card.childNodes);
  dialog().dispatchEvent(new CustomEvent("htmx:after:swap", { bubbles: true }));
  if (!dialog().open) {
    const { activeElement: at } = document;
    below = at.matches("textarea, input") && at.selectionStart !== null ? at : null;
    if (below) typedAt = performance.now();
    dialog().showModal(); // with the focus on itself
    await typingEnds();
    if (dialog().querySelector("[data-part] :focus")) return; // by the pointer, so it was seen
    below = null;
  }
  dialog().querySelector('[aria-invalid], input[type="password"], [name="code"], button.primary, a.button')?.focus();
}

/** A user is signed in: if it is the user who opened the page, continue with the new token. */
function accept(found) {
  const { user: now } = found.documentElement.dataset;
  if (now !== user) return refuse(now);
  adoptTokenOf(found);
  finish();
}

function adoptTokenOf(found) {
  adoptToken(JSON.parse(found.body.getAttribute("hx-headers:inherited"))["x-csrftoken"]);
}

/** Text that one user typed is never sent as another's. */
function refuse(now) {
  const note = document.getElementById("other-user").content.cloneNode(true);
  const text = note.querySelector("p");
  text.textContent = text.textContent.replace("{now}", now).replace("{user}", user);
  dialog().querySelector("[data-part]").replaceChildren(note);
  if (!dialog().open) dialog().showModal();
}

/** After a sign-in in another tab, the forms of this page have a token that is no longer valid. */
recovery.renew = async () => {
  const answer = await plainRequest(dialog().dataset.done);
  const found = await read(answer);
  if (isDone(answer) && found.documentElement.dataset.user === user) adoptTokenOf(found);
  else await recovery.signIn(answer.url);
};

async function send(form, submitter) {
  const button = submitter ?? form.querySelector("button");
  button.ariaBusy = "true";
  try {
    const sent = { method: "POST", body: new FormData(form, submitter) };
    await take(await (isSignedIn ? plainRequest(dialog().dataset.done) : plainRequest(form.action, sent)));
  } catch {
    dialog().querySelector("[data-part]").prepend(document.getElementById("sign-in-failed").content.cloneNode(true));
  } finally {
    button.ariaBusy = null;
  }
}

dialog()?.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.matches("[data-provider]")) {
    form.target = "_blank"; // the page stays; the other tab tells when it is done
    return;
  }
  event.preventDefault();
  send(form, event.submitter);
});
dialog()?.addEventListener("pointerdown", () => (below = null));
dialog()?.addEventListener("close", () => waiting && finish(givenUp()));

channel.addEventListener("message", async () => {
  if (!waiting) return;
  const answer = await plainRequest(dialog().dataset.done).catch(() => null);
  if (!waiting || !answer || !isDone(answer)) return;
  // the rest of a password would be typed into what has the focus below
  if ([...dialog().querySelectorAll('input[type="password"], [name="code"]')].some(({ value }) => value)) isSignedIn = true;
  else await take(answer);
});
