// The commands of a page for the palette: those with keys, and its buttons and links; and how they match what is typed.

const PAGE = "main :is(.button, .actions a, .segmented a)";
const ELSEWHERE = "table, .grid-region, dialog, [data-grid], .pager, .empty, .hits, .toast";
const SHEET = "#shortcuts [data-command]";

/** Commands as { id, text, detail, icon, caps, run, href }; `runs` are those with keys that work where the focus is. */
export function actionsOf(runs) {
  const withKeys = [...document.querySelectorAll(SHEET)]
    .filter((term) => "paletteCommand" in term.dataset && runs.has(term.dataset.command))
    .map((term) => ({
      id: term.dataset.command,
      text: term.nextElementSibling.textContent.trim(),
      detail: "",
      icon: null, // comes with the first answer of the server
      caps: [...term.querySelectorAll("kbd")],
      run: runs.get(term.dataset.command),
    }));
  const names = new Set(withKeys.map(({ text }) => text));
  const onPage = [...document.querySelectorAll(PAGE)].filter((it) => !it.closest(ELSEWHERE) && it.checkVisibility());
  const ofUser = [...document.querySelectorAll("#user-menu :is(a, button)")];
  const others = [...onPage, ...ofUser].filter((it) => !it.disabled && !it.getAttribute("aria-current")).map(action);
  const distinct = others.filter(({ text, detail }) => {
    const name = detail ? `${text} ${detail}` : text;
    return text && !names.has(name) && names.add(name);
  });
  return [...withKeys, ...distinct];
}

function action(element) {
  const words = [...element.childNodes].filter((it) => !it.matches?.("kbd, svg")).map((it) => it.textContent);
  const text = element.getAttribute("aria-label") ?? (words.join(" ").replace(/\s+/g, " ").trim() || element.title);
  return { id: `action:${text}`, text, detail: placeOf(element), icon: element.querySelector("svg"), caps: [], run: () => element.click(), href: element.href };
}

/** The title of the part of the page that a button is in. */
function placeOf(element) {
  const part = element.closest("main section, main form, main article")?.closest(":has(:is(h2, h3))");
  return part?.matches("main *") ? part.querySelector("h2, h3").textContent.replace(/\s+/g, " ").trim() : "";
}

/** Without case and marks, as the server searches: the four letters i of Turkish are one. */
export function fold(text) {
  return text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replaceAll("ı", "i").trim();
}

/** How far a command is from the words: 0 where each begins a word of it, 2 where letters lie between; null if it is none. */
export function rank(words, { text, detail }) {
  const name = fold(text);
  const all = `${name} ${fold(detail)}`;
  let worst = words.length && !words.some((word) => matches(word, name) !== null) ? null : 0;
  for (const word of words) {
    const found = matches(word, all);
    worst = worst === null || found === null ? null : Math.max(worst, found);
  }
  return worst;
}

function matches(word, text) {
  if (` ${text}`.includes(` ${word}`)) return 0;
  if (word.length < 3) return null;
  if (text.includes(word)) return 1;
  // within one word that begins alike, so that "expt" is Export
  const isWithin = (whole) => whole[0] === word[0] && [...word].reduce((from, letter) => (from < 0 ? from : whole.indexOf(letter, from) + 1 || -1), 0) > 0;
  return text.split(" ").some(isWithin) ? 2 : null;
}
