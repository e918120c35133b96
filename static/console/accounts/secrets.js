// Secrets: data-copy-answer on a form puts its answer on the clipboard and nowhere else;
// data-click-after on a link follows it after so many seconds, to hide what is shown.
import { onSubmit, onSwap } from "../site/on.js";
import { put } from "../site/copy.js";
import { request } from "../site/request.js";
import { notify } from "../site/toast.js";

const waiting = new WeakSet();

onSubmit("form[data-copy-answer]", async (form) => {
  const answer = await request(form.action, {
    method: "POST",
    body: new FormData(form),
    headers: { "HX-Request": "true", "HX-Current-URL": location.href },
  });
  if (!answer.ok || answer.redirected) return location.reload();
  await put(await answer.text());
  notify(document.getElementById("toasts").dataset.copied);
});

function adopt() {
  for (const link of document.querySelectorAll("[data-click-after]")) {
    if (waiting.has(link)) continue;
    waiting.add(link);
    setTimeout(() => link.isConnected && link.click(), Number(link.dataset.clickAfter) * 1000);
  }
}

onSwap(adopt);
adopt();
