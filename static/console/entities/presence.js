// Who else has the table open, in its header line; who has this entity open, beside it; and that it was changed meanwhile.
import { onPage, onSwap } from "../site/on.js";
import { refresh } from "../site/request.js";
import { shownEntity } from "./stream.js";

const MOST = 3; // people who are drawn; of the others, the number
const ANSWER = 700; // ms, for the answer to what was saved here
const TONES = 5;

let people = [];

function initials(name) {
  const [first, second] = name.split(/[._@+-]+/).filter(Boolean);
  return `${first?.[0] ?? name[0]}${second?.[0] ?? first?.[1] ?? ""}`.toLocaleUpperCase("en");
}

function tone(name) {
  return [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 9973, 7) % TONES;
}

function avatar(name) {
  const drawn = document.createElement("li");
  drawn.className = "avatar";
  drawn.dataset.tone = tone(name);
  drawn.title = name;
  const letters = document.createElement("span");
  letters.ariaHidden = "true";
  letters.textContent = initials(name);
  const whole = document.createElement("bdi");
  whole.textContent = name;
  drawn.append(letters, whole);
  return drawn;
}

function draw() {
  const place = document.getElementById("presence");
  if (!place) return;
  const list = place.querySelector("ul");
  const drawn = people.slice(0, MOST).map(({ name }) => avatar(name));
  if (people.length > MOST) {
    const rest = document.createElement("li");
    rest.className = "avatar rest";
    rest.textContent = `+${people.length - MOST}`;
    rest.title = people.slice(MOST).map(({ name }) => name).join(", ");
    drawn.push(rest);
  }
  list.replaceChildren(...drawn);
  place.hidden = !people.length;
  drawBeside();
}

/** Who has the entity open that is shown here. */
function drawBeside() {
  const entity = shownEntity();
  const line = entity?.querySelector("[data-also-here]");
  if (!line) return;
  const names = people.filter(({ entities }) => entities.includes(entity.dataset.entity)).map(({ name }) => name);
  line.hidden = !names.length;
  line.querySelector("bdi").textContent = names.join(", ");
}

document.addEventListener("table:people", ({ detail }) => {
  if (JSON.stringify(detail) === JSON.stringify(people)) return;
  people = detail;
  draw();
});
onSwap(drawBeside);
onPage((left) => {
  const drawer = document.getElementById("drawer");
  if (!drawer) return;
  const filling = new MutationObserver(drawBeside);
  filling.observe(drawer, { childList: true });
  left.addEventListener("abort", () => filling.disconnect());
});

// a change of the entity that is shown

let waiting;

/** What became of the entity since it was opened: who did it, what, and a way to take it. */
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
