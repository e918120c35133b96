// data-filter="SELECTOR": what is typed hides the [data-filter-text] in there that do not hold it.
document.addEventListener("input", (event) => {
  const selector = event.target.dataset?.filter;
  if (!selector) return;
  // no language's own casing: identifiers compare alike everywhere
  const wanted = event.target.value.trim().toLowerCase();
  let left = 0;
  for (const item of document.querySelectorAll(`${selector} [data-filter-text]`)) {
    item.hidden = !item.dataset.filterText.toLowerCase().includes(wanted);
    left += !item.hidden;
  }
  const none = document.querySelector(`${selector} [data-filter-none]`);
  if (none) none.hidden = left > 0;
});
