// data-submit-on-change: a form of one choice is sent when the choice is made; without scripts it has a button.
document.addEventListener("change", (event) => {
  event.target.closest("form[data-submit-on-change]")?.requestSubmit();
});
