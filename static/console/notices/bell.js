// The bell in the top bar is renewed when the page is seen again, and soon after its number has changed; nothing is asked for
// out of sight, and a session that has expired is left to what the user does next.
import { plainRequest, read } from "../site/request.js";

const EVERY = 10_000; // ms
const bell = () => document.getElementById("notice-bell");
const numberOf = (part) => part?.querySelector(".job-number")?.textContent;
const renew = () => document.hidden || bell()?.dispatchEvent(new Event("renew"));

async function look() {
  if (document.hidden || !bell()) return;
  const answer = await plainRequest(bell().getAttribute("hx-get"), { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer?.status === 200 && numberOf(await read(answer)) !== numberOf(bell())) renew();
}

document.addEventListener("visibilitychange", renew);
setInterval(look, EVERY);
