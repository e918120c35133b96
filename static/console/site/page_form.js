// Ordinary forms of a page, sent without leaving it: what was typed stays until the server has taken it.
import { isTurning, visit } from "./navigation.js";
import { on, pageSignal } from "./on.js";
import { loadHead, read, request } from "./request.js";
import { goOnSaved, setOnItsWay, setSent } from "./unsaved.js";

const PATIENCE = 300; // milliseconds after which the button shows that an answer is on its way
const DEPARTURE = 3000; // milliseconds for which a page that the browser was asked for may take to come

let leftAt = -Infinity; // when the browser was asked for another page
addEventListener("beforeunload", () => (leftAt = performance.now()));

// on the window, after all who send a form themselves
addEventListener("submit", (event) => {
  const form = event.target;
  const { submitter } = event;
  const isOurs = form.getAttribute("method") === "post" && !(submitter?.formTarget || form.target) && !form.closest(".plain, [data-native]");
  if (event.defaultPrevented) return;
  if (!isOurs) return setSent(form.getAttribute("method") !== "dialog");
  event.preventDefault();
  send(form, submitter);
});

async function send(form, submitter) {
  if (form.ariaBusy === "true") return;
  const address = submitter?.hasAttribute("formaction") ? submitter.formAction : form.getAttribute("action") || location.href;
  form.ariaBusy = "true";
  setOnItsWay(form, true);
  const timer = setTimeout(() => submitter?.setAttribute("aria-busy", "true"), PATIENCE);
  try {
    await load(address, new FormData(form, submitter));
  } catch (error) {
    setOnItsWay(form, false);
    throw error;
  } finally {
    clearTimeout(timer);
    submitter?.removeAttribute("aria-busy");
    form.ariaBusy = null;
  }
}

/** Send a form, and show what answers it: another page, this page again, or a part of it in `place`. */
export async function load(address, body, place) {
  const left = pageSignal();
  const sentAt = performance.now();
  const kind = place ? "partial" : "full";
  const headers = { "HX-Request": "true", "HX-Request-Type": kind, "HX-Current-URL": location.href };
  const answer = await request(address, { method: "POST", body, headers });
  const elsewhere = answer.headers.get("HX-Redirect");
  if (elsewhere) {
    setSent(true);
    if (goOnSaved() || isTurning()) return; // where the user wanted to go since
    if (leftAt > sentAt) await new Promise((done) => setTimeout(done, DEPARTURE)); // a download leaves this page here
    return visit(elsewhere);
  }
  setSent(false);
  const found = await read(answer);
  if (!place) await loadHead(found).catch(() => {}); // without its scripts, what is shown once is still shown
  if (left.aborted) return;
  if (place) put(place, place, () => place.replaceChildren(...document.adoptNode(found.body).childNodes));
  else showPage(found);
}

function put(old, place, change) {
  old.dispatchEvent(new CustomEvent("htmx:before:swap", { bubbles: true, detail: { ctx: { target: old } } }));
  change();
  window.htmx.process(place);
  place.dispatchEvent(new CustomEvent("htmx:after:swap", { bubbles: true }));
}

function showPage(found) {
  const main = found.getElementById("main");
  document.title = found.title;
  document.getElementById("toasts").append(...found.getElementById("toasts").children);
  const old = document.getElementById("main");
  put(old, main, () => old.replaceWith(document.adoptNode(main)));
  const first = main.querySelector("[data-error-summary], [autofocus], [aria-invalid=true]");
  if (!main.contains(document.activeElement)) (first ?? main).focus(); // its own scripts may know a better place
  if (!first) scrollTo(0, 0);
}

// a form of one choice is sent when the choice is made; without scripts it has a button
on("change", "form[data-submit-on-change]", (form) => form.requestSubmit());
