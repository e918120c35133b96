// The picker beside a text field for a time; what it gives has no zone, which means the reader's.
import { on } from "./on.js";

const native = (button) => button.parentElement.querySelector("[data-moment]");
const text = (input) => input.parentElement.querySelector("[name]");

on("click", "[data-pick-moment]", (button) => {
  const input = native(button);
  input.value = text(input).value.trim().replace(" ", "T").slice(0, input.type === "date" ? 10 : 19);
  input.showPicker();
});

// the change that follows belongs to the form, which then finds the new text
on("input", "[data-moment]", (input) => {
  if (input.value) text(input).value = input.value.replace("T", " ");
});
