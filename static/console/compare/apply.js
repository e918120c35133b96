// The button that applies selected entities says how many it inserts, changes and deletes, and is red if it deletes.
import { on, onPage } from "../site/on.js";

function describe(form) {
  const button = form.querySelector("[data-frame]");
  if (!button) return;
  const lang = document.documentElement.lang;
  const effects = [...form.querySelectorAll("[data-effect]:checked")].map((box) => box.dataset.effect);
  const done = ["insert", "change", "delete"]
    .map((effect) => [effects.filter((it) => it === effect).length, button.dataset[effect]])
    .filter(([count]) => count)
    .map(([count, text]) => text.replace("{}", count.toLocaleString(lang)));
  if (!done.length) return;
  const text = button.dataset.frame.replace("{}", done.join(", "));
  button.textContent = text[0].toLocaleUpperCase(lang) + text.slice(1);
  button.classList.toggle("danger", effects.includes("delete"));
}

// after selection.js, which ticks several boxes at once
on("click", "[data-selection]", describe);
const describeAll = () => document.querySelectorAll("[data-selection]").forEach(describe);
addEventListener("pageshow", describeAll);
onPage(describeAll);
