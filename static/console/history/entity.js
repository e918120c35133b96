// The arrow keys go through the list of versions.
import { bind } from "../site/commands.js";

function version({ target }) {
  return target.closest?.("[data-version]");
}

function step(link, { key }) {
  const links = [...document.querySelectorAll("[data-version]")];
  const next = links[links.indexOf(link) + (key === "ArrowDown" ? 1 : -1)];
  if (!next) return false;
  next.focus();
}

bind(version, { "ArrowDown ArrowUp Shift+ArrowDown Shift+ArrowUp": step });
