// The only module that talks to the server beside htmx: for answers that do not simply replace a part of the page.

/** The answer as it came: files, redirects, whatever is not read here. */
export function request(address, options) {
  return fetch(address, options);
}

/** The answer as a document, of which nothing runs or loads before it is put into the page; `signal` aborts. */
export function get(address, signal) {
  return documentOf(address, { signal });
}

/** As get, for what a form sends. */
export function post(address, body, signal) {
  return documentOf(address, { method: "POST", body, signal });
}

/** The JSON of the answer; where it failed, rejected with the `error` in it. */
export async function json(address, options) {
  const answer = await request(address, { ...options, headers: { Accept: "application/json" } });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

async function documentOf(address, options) {
  const answer = await request(address, { ...options, headers: { "HX-Request": "true" } });
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { status: answer.status, isRedirected: answer.redirected, redirect: answer.headers.get("HX-Redirect"), found };
}

/** Put the toasts of an answer into the page's; Undo comes back to this page. */
export function announce(found) {
  const region = document.getElementById("toasts");
  for (const toasts of found.querySelectorAll('[hx-swap-oob="beforeend:#toasts"]')) {
    for (const next of toasts.querySelectorAll('[name="next"]')) next.value = location.pathname + location.search;
    region.append(...toasts.children);
  }
}
