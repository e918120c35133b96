// A form with data-appearance changes the theme at once; the server keeps the choice in a cookie.
import { request } from "./request.js";

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-appearance]");
  const chosen = event.submitter;
  if (!form || chosen?.name !== "theme") return;
  event.preventDefault();
  const body = new FormData(form, chosen);
  document.documentElement.dataset.theme = chosen.value;
  document.querySelector('meta[name="color-scheme"]').content = chosen.value === "system" ? "light dark" : chosen.value;
  for (const button of form.querySelectorAll('[name="theme"]'))
    button.setAttribute("aria-pressed", String(button === chosen));
  const answer = await request(form.action, { method: "POST", body, redirect: "manual" });
  if (answer.type !== "opaqueredirect") location.reload();
});
