// Other users with the table open, in its header line, or with this entity, beside it; and the place of this tab.
import { shownEntity } from "../entities/stream.js";
import { onPage, onSwap } from "../site/on.js";
import { postInBackground } from "../site/request.js";

const MOST = 3; // people who are drawn; of the others, the number
const TONES = 5;

const place = () => document.getElementById("presence");

/** The name of this tab, as a UUID; crypto.randomUUID needs HTTPS. */
function makeName() {
  const digits = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const tab = makeName();
let people = [];
let told = ""; // the entity that the server knows of
let isKnown = false; // whether the server knows this tab

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
  const shown = place();
  if (!shown) return;
  const list = shown.querySelector("ul");
  const drawn = people.slice(0, MOST).map(({ name }) => avatar(name));
  if (people.length > MOST) {
    const rest = document.createElement("li");
    rest.className = "avatar rest";
    rest.textContent = `+${people.length - MOST}`;
    rest.title = people.slice(MOST).map(({ name }) => name).join(", ");
    drawn.push(rest);
  }
  list.replaceChildren(...drawn);
  shown.hidden = !people.length;
  drawBeside();
}

/** Show who else has this entity open. */
function drawBeside() {
  const entity = shownEntity();
  const line = entity?.querySelector("[data-also-here]");
  if (!line) return;
  const names = people.filter(({ entities }) => entities.includes(entity.dataset.entity)).map(({ name }) => name);
  line.hidden = !names.length;
  line.querySelector("bdi").textContent = names.join(", ");
}

function show(found) {
  if (JSON.stringify(found) === JSON.stringify(people)) return;
  people = found;
  draw();
}

/** Tell the server which entity is shown now. */
function move() {
  const now = shownEntity()?.dataset.entity ?? "";
  if (!isKnown || now === told) return;
  told = now;
  const body = new FormData();
  body.set("tab", tab);
  body.set("entity", now);
  body.set("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]").value);
  postInBackground(place().dataset.move, body).catch(() => (told = null)); // told again with the next news
}

document.addEventListener("table:connect", ({ detail: address }) => {
  if (!place()) return;
  told = shownEntity()?.dataset.entity ?? "";
  address.searchParams.set("tab", tab);
  if (told) address.searchParams.set("entity", told);
});
document.addEventListener("table:source", ({ detail: source }) => {
  source.addEventListener("presence", ({ data }) => {
    show(JSON.parse(data));
    isKnown = true;
    move(); // an entity may have been opened before
  });
});
document.addEventListener("table:disconnect", () => {
  isKnown = false;
  show([]);
});
onSwap(() => {
  drawBeside();
  move();
});
onPage((left) => {
  const drawer = document.getElementById("drawer");
  if (!drawer) return;
  const filling = new MutationObserver(() => {
    drawBeside();
    move();
  });
  filling.observe(drawer, { childList: true });
  left.addEventListener("abort", () => filling.disconnect());
});
