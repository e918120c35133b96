// Where the editor of a cell stands: its input over the cell, its tools below or, at the bottom of the window, above.
const [LEAST, LEAST_NUMBER, MOST] = [312, 264, 640]; // pixels
const THREE_VALUES = 440; // as wide as a conflict needs to show them side by side
const EDGE = 8; // pixels to the sides of the window
const BORDER = 2;
const phone = matchMedia("(width < 560px)");
const pen = document.createElement("canvas").getContext("2d");

export function place(dialog, cell) {
  if (phone.matches) return lift(dialog);
  const field = dialog.querySelector(".cell-value");
  const isNumber = cell.matches(".number");
  dialog.toggleAttribute("data-number", isNumber);
  const box = cell.getBoundingClientRect();
  const isEmpty = dialog.matches("[data-waiting]:has(:placeholder-shown)"); // the cell is seen through it
  const least = isEmpty ? 0 : leastOf(dialog, isNumber);
  const width = Math.min(Math.max(box.width, least, Math.min(MOST, widthOf(field))), innerWidth - 2 * EDGE);
  // numbers grow to the left, and so does what has no room on the right: the text stays where it was
  const isFlipped = isNumber || box.left + width > innerWidth - EDGE;
  const left = isFlipped ? box.right - width : box.left;
  const { style } = dialog;
  style.setProperty("width", `${width}px`);
  style.setProperty("left", `${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`);
  const { offsetHeight: height } = dialog;
  const isAbove = box.top + height > innerHeight - EDGE && box.bottom - height > EDGE;
  dialog.toggleAttribute("data-above", isAbove);
  style.setProperty("top", `${isAbove ? box.bottom - height + BORDER / 2 - 1 : box.top - 1}px`);
}

function leastOf(dialog, isNumber) {
  if (dialog.querySelector(".cell-conflict")) return THREE_VALUES;
  return isNumber ? LEAST_NUMBER : LEAST;
}

/** As wide as the longest line, with its padding and the border. */
function widthOf(field) {
  if (!field) return 0;
  pen.font = getComputedStyle(field).font;
  return Math.ceil(Math.max(...field.value.split("\n").map((line) => pen.measureText(line).width))) + 28;
}

/** Above the keyboard of a phone. */
function lift(dialog) {
  const { height = innerHeight, offsetTop = 0 } = globalThis.visualViewport ?? {};
  for (const name of ["width", "left", "top"]) dialog.style.removeProperty(name);
  dialog.removeAttribute("data-above");
  dialog.style.setProperty("--keyboard", `${Math.max(0, innerHeight - height - offsetTop)}px`);
}
