// data-chips="SEPARATORS": a field of texts between commas shows each as a chip that can be taken out. The field itself
// stays, hidden, and is what the form sends; without this it is a text field like others.
import { onSwap, pageSignal } from "./on.js";

function texts(value) {
  return value.split(",").map((text) => text.trim()).filter(Boolean);
}

function enhance(field) {
  const box = document.createElement("div");
  box.className = "chips";
  const input = document.createElement("input");
  for (const name of ["id", "class", "placeholder", "autocomplete", "autocapitalize", "spellcheck", "list", "aria-invalid", "aria-describedby", "disabled"])
    if (field.hasAttribute(name)) input.setAttribute(name, field.getAttribute(name));
  input.type = "text";
  field.removeAttribute("id");
  const hint = field.placeholder;
  const isFocused = document.activeElement === field;
  field.type = "hidden";
  delete field.dataset.chips;
  const separators = new RegExp(field.dataset.separators || ",+");

  function draw() {
    for (const chip of box.querySelectorAll(".chip")) chip.remove();
    const all = texts(field.value);
    all.forEach((text, place) => {
      const chip = document.createElement("span");
      chip.className = "chip";
      chip.append(Object.assign(document.createElement("span"), { textContent: text, dir: "auto" }));
      if (!input.disabled) {
        const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
        remove.setAttribute("aria-label", (field.dataset.remove ?? "× {}").replace("{}", text));
        remove.addEventListener("click", () => {
          set(all.toSpliced(place, 1));
          (box.querySelectorAll(".chip button")[place] ?? input).focus();
        });
        chip.append(remove);
      }
      input.before(chip);
    });
    input.placeholder = all.length ? "" : hint;
  }

  function set(all) {
    field.value = [...new Set(all)].join(", ");
    draw();
    field.form?.setAttribute("data-dirty", "");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function take() {
    const typed = input.value.split(separators).map((text) => text.trim()).filter(Boolean);
    input.value = "";
    if (typed.length) set([...texts(field.value), ...typed]);
  }

  input.addEventListener("input", (event) => {
    if (!event.isComposing && separators.test(input.value)) take();
  });
  input.addEventListener("change", take);
  input.addEventListener("blur", take);
  for (const kind of ["beforeunload", "tablero:leaving"]) addEventListener(kind, take, { signal: pageSignal() });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && input.value.trim()) {
      event.preventDefault();
      take();
    } else if (event.key === "Backspace" && !input.value) {
      const all = texts(field.value);
      if (all.length) set(all.slice(0, -1));
    }
  });
  box.addEventListener("mousedown", (event) => {
    if (event.target !== box) return;
    event.preventDefault();
    input.focus();
  });
  field.before(box);
  box.append(input, field);
  draw();
  if (isFocused) input.focus();
}

function prepare() {
  for (const field of document.querySelectorAll("input[data-chips]")) {
    field.dataset.separators = field.dataset.chips;
    enhance(field);
  }
}

onSwap(prepare);
prepare();
