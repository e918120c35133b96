// The browser's time zone, for users who did not choose one: the server reads it with the next page. A page with times that
// was drawn before is loaded again, unless it says something that a reload would lose.
import { keepCookie } from "./on.js";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const { dataset } = document.documentElement;
const isKnown = () => document.cookie.split("; ").includes(`tablero_zone=${zone}`);

if (zone && !isKnown()) {
  keepCookie("zone", zone);
  const isWrong = "zoneOfBrowser" in dataset && dataset.zone !== zone && document.querySelector("main :is(time, [data-grid])");
  if (isWrong && isKnown() && !document.querySelector("#toasts > *")) location.reload();
}
