// A form with data-passkey="get" or "create" is sent once the browser has put a passkey's answer into it. The server's
// options are in data-options, or fetched from data-source; all bytes in them are written in base64url.
import { onSwap } from "../site/on.js";
import { json } from "../site/request.js";

const read = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const write = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const listed = (credentials) => credentials?.map((it) => ({ ...it, id: read(it.id) }));

async function optionsOf(form) {
  if (form.dataset.options) return JSON.parse(form.dataset.options).publicKey;
  return (await json(form.dataset.source)).request_options.publicKey;
}

async function ask(form) {
  const options = await optionsOf(form);
  options.challenge = read(options.challenge);
  if (form.dataset.passkey === "create") {
    options.user.id = read(options.user.id);
    options.excludeCredentials = listed(options.excludeCredentials);
    return navigator.credentials.create({ publicKey: options });
  }
  options.allowCredentials = listed(options.allowCredentials);
  return navigator.credentials.get({ publicKey: options });
}

function describe(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"])
    if (credential.response[name]) response[name] = write(credential.response[name]);
  if (credential.response.getTransports) response.transports = credential.response.getTransports();
  return {
    id: credential.id,
    rawId: write(credential.rawId),
    type: credential.type,
    response,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

async function send(event) {
  const form = event.currentTarget;
  if (form.elements.credential.value) return;
  event.preventDefault();
  const button = form.querySelector("button:not([type])");
  const complaint = form.querySelector("[role=alert]");
  if (button.ariaBusy === "true") return;
  button.ariaBusy = "true";
  complaint.textContent = "";
  try {
    form.elements.credential.value = JSON.stringify(describe(await ask(form)));
    form.requestSubmit();
    form.elements.credential.value = ""; // where it is not taken, the next one is another
  } catch {
    complaint.textContent = form.dataset.cancelled;
  }
  button.ariaBusy = "false";
}

/** Show the forms; in a browser without passkeys they stay hidden. */
function enable() {
  for (const form of document.querySelectorAll("form[data-passkey][hidden]")) {
    form.hidden = false;
    form.addEventListener("submit", send);
  }
}

if (window.PublicKeyCredential) {
  onSwap(enable);
  enable();
}
