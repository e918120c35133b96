// The histogram beside the log, and the panel that shows what an undo would do.

import "../site/histogram.js";
import { bind } from "../site/commands.js";
import { on, onPage, onSwap } from "../site/on.js";

let opener = null;

// it belongs to the form, but is beside the bars
on("change", ".histogram [name=span]", ({ form }) => form.requestSubmit());

// the panel

const panel = () => document.getElementById("revert");

on("click", "[data-revert]", (link) => (opener = link));
on("click", "[data-close-revert]", (_, event) => {
  if (!panel()?.childElementCount) return;
  event.preventDefault();
  close();
});

onPage(() => (opener = null));

const openPanel = () => panel()?.contains(document.activeElement);
bind(openPanel, { Escape: () => (close(), false) });

function close() {
  panel().replaceChildren();
  if (opener?.isConnected) opener.focus();
}

onSwap(() => {
  const title = panel()?.querySelector("#revert-title");
  if (title && !panel().contains(document.activeElement)) title.focus();
});
