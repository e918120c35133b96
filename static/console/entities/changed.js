// The entity that is shown was changed by others meanwhile: who did it, and a way to take it.
import { refresh } from "../site/request.js";
import { shownEntity } from "./stream.js";

const ANSWER = 700; // ms, for the answer to what was saved here

let waiting;

/** Show how others changed the entity since it was opened, and a way to take their change. */
async function look() {
  const entity = shownEntity();
  const slot = entity?.querySelector("[data-changed-by-others]");
  if (!slot) return;
  const address = new URL(slot.dataset.changedByOthers, location);
  address.searchParams.set("etag", entity.dataset.etag);
  const { status, found } = await refresh(address).catch(() => ({}));
  const now = found?.querySelector("[data-outdated]");
  if (status !== 200 || !slot.isConnected || !now) return;
  slot.replaceChildren(document.adoptNode(now));
  window.htmx?.process(slot);
}

function lookSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(look, ANSWER);
}

document.addEventListener("table:change", ({ detail: { key, etag, op } }) => {
  const entity = shownEntity();
  if (entity?.dataset.entity === key && (op === "d" || entity.dataset.etag !== etag)) lookSoon();
});
document.addEventListener("table:open", ({ detail }) => detail.isWhole || lookSoon());
