// Answers of the server that are no page: parts in inert templates, and toasts.

/** What a form sends, and the answer as a document; `signal` gives up. */
export async function post(address, body, signal) {
  const answer = await fetch(address, { method: "POST", body, signal, headers: { "HX-Request": "true" } });
  return { status: answer.status, found: await read(answer) };
}

export async function get(address, signal) {
  const answer = await fetch(address, { signal, headers: { "HX-Request": "true" } });
  return { status: answer.status, found: await read(answer) };
}

async function read(answer) {
  // nothing of it runs or loads before it is put into the page
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** Put what was said into the page's toasts; Undo comes back to this page. */
export function announce(found) {
  const region = document.getElementById("toasts");
  for (const said of found.querySelectorAll('[hx-swap-oob="beforeend:#toasts"]')) {
    for (const next of said.querySelectorAll('[name="next"]')) next.value = location.pathname + location.search;
    region.append(...said.children);
  }
}
