// The dialog of a grid's page for parts that come from the server: a value, rows to paste, changes that wait.
const dialog = () => document.getElementById("part-dialog");

/** Put a part, which another document holds, into the dialog, and the focus on what is most of use in it. */
export function show(title, part, focused) {
  const it = dialog();
  it.querySelector("h2").textContent = title;
  it.querySelector(".body").replaceChildren(document.adoptNode(part));
  if (!it.open) it.showModal();
  focused?.focus();
}

export function close() {
  dialog()?.close();
}

document.addEventListener("click", (event) => {
  if (!event.target.closest?.("#part-dialog [data-close]")) return;
  event.preventDefault();
  close();
});
