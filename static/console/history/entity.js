// The arrow keys go through the list of versions.
document.addEventListener("keydown", (event) => {
  const link = event.target.closest("[data-version]");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!link || !step || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...document.querySelectorAll("[data-version]")];
  const next = links[links.indexOf(link) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
});
