// Events by delegation: parts that come later need no wiring.

/** Call `act(element, event)` for an event in what matches. */
export function on(kind, selector, act, options) {
  document.addEventListener(
    kind,
    (event) => {
      const element = event.target.closest?.(selector);
      if (element) act(element, event);
    },
    options,
  );
}

/** Call it instead of the default action of a click; a link that is opened elsewhere is left alone. */
export function onClick(selector, act, options) {
  const act_ = (element, event) => {
    if (element.matches("a") && (event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    act(element, event);
  };
  on("click", selector, act_, options);
}

/** Call `act(form, submitter)` instead of sending a form. */
export function onSubmit(selector, act) {
  on("submit", selector, (form, event) => {
    event.preventDefault();
    act(form, event.submitter);
  });
}

/** Call it after each part that came into the page. */
export function onSwap(act, kinds = []) {
  for (const kind of ["htmx:after:swap", ...kinds]) document.addEventListener(kind, act);
}

// pages: one document shows one after the other (navigation.js)

const acts = [];
let page = new AbortController();

/** Call `act(left)` for the page that is shown, and for each that takes its place; the signal `left` ends with the page. */
export function onPage(act) {
  acts.push(act);
  act(page.signal);
}

/** Says when the page that is shown is left. */
export const pageSignal = () => page.signal;

/** `change` puts another page in the place of this one. */
export function turnPage(change) {
  page.abort();
  page = new AbortController();
  change();
  for (const act of acts) act(page.signal);
}

/** Functions that call `ask(signal, …)` once typing rests, after this event or now, and for the newest text only. */
export function newest(wait, ask) {
  let timer;
  let asked = new AbortController();
  const stop = () => {
    clearTimeout(timer);
    asked.abort();
  };
  const now = (...given) => {
    stop();
    asked = new AbortController();
    return ask(asked.signal, ...given);
  };
  const later = (pause, given) => {
    stop();
    const left = page.signal;
    timer = setTimeout(() => left.aborted || now(...given), pause);
  };
  const isNewest = (signal) => signal === asked.signal;
  return { stop, now, isNewest, soon: (...given) => later(wait, given), soonest: () => later(0, []) };
}

/** Name a cookie as the server does: over TLS with a prefix that nothing without TLS can set. */
export const cookieName = (name) => `${location.protocol === "https:" ? "__Secure-" : ""}tablero_${name}`;

/** Keep a choice for the server, which reads it with the next page. */
export function keepCookie(name, value) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${cookieName(name)}=${value}; path=/ui/; max-age=31536000; samesite=lax${secure}`;
}

/** Open a menu below its button, with room for content on its way; or close it, and return false. */
export function openEmpty(menu, button) {
  if (menu.matches(":popover-open")) {
    menu.hidePopover();
    return false;
  }
  menu.textContent = menu.dataset.wait;
  menu.showPopover();
  putBelow(menu, button);
  return true;
}

/** Put an open menu below its button, inside the window. */
export function putBelow(menu, button) {
  const box = button.getBoundingClientRect();
  const { style, offsetWidth: width } = menu;
  style.setProperty("left", `${Math.max(8, Math.min(box.right - width, innerWidth - width - 8))}px`);
  style.setProperty("top", `${box.bottom + 4}px`);
  style.setProperty("max-height", `${Math.max(240, innerHeight - box.bottom - 12)}px`);
}
