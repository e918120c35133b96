// The dialog of a grid's page for parts that come from the server: a value, rows to paste, changes that wait.
import { isTypingOutside } from "./dialog.js";
import { onClick } from "./on.js";

const dialog = () => document.getElementById("part-dialog");

let asking = new AbortController();

/** The signal for the dialog's next request: the newer of two parts is shown, and none in a dialog that was closed. */
export function nextPart() {
  asking.abort();
  asking = new AbortController();
  return asking.signal;
}

document.addEventListener("close", ({ target }) => target === dialog() && asking.abort(), true);

/** Put a part, which another document holds, into the dialog, and the focus on what is most of use in it. */
export function show(title, part, focused) {
  const it = dialog();
  const heading = it.querySelector("h2");
  // a key typed into a field meanwhile must press no button
  const isLate = isTypingOutside(it);
  heading.textContent = title;
  it.querySelector(".body").replaceChildren(document.adoptNode(part));
  if (!it.open) it.showModal();
  if (isLate) heading.tabIndex = -1;
  (isLate ? heading : focused)?.focus();
}

export function close() {
  dialog()?.close();
}

onClick("#part-dialog [data-close]", close);
