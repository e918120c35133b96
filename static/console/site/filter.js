// data-filter="SELECTOR": what is typed hides the [data-filter-text] in there that do not hold it.
document.addEventListener("input", (event) => {
  const selector = event.target.dataset?.filter;
  if (!selector) return;
  const wanted = fold(event.target.value.trim());
  let left = 0;
  for (const item of document.querySelectorAll(`${selector} [data-filter-text]`)) {
    item.hidden = !fold(item.dataset.filterText).includes(wanted);
    left += !item.hidden;
  }
  const none = document.querySelector(`${selector} [data-filter-none]`);
  if (none) none.hidden = left > 0;
});

/** Without case and marks, so that İ, I, ı and i are one letter. */
function fold(text) {
  return text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replaceAll("ı", "i");
}
