// The browser's time zone, for users who did not choose one: the server reads it with the next page. A page with times that
// was drawn before is loaded again, unless it says something that a reload would lose.
import { cookieName, keepCookie } from "./on.js";

const { dataset } = document.documentElement;
const read = () => document.cookie.split("; ").find((it) => it.startsWith(`${cookieName("zone")}=`))?.split("=")[1];
const known = read();

function look() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || zone === known) return;
  keepCookie("zone", zone);
  const isWrong = "zoneOfBrowser" in dataset && dataset.zone !== zone && document.querySelector("main :is(time, [data-grid])");
  if (isWrong && read() === zone && !document.querySelector("#toasts > *")) location.reload();
}

// to ask for the zone takes a browser as long as all modules, and it is seldom another one
if (known) (window.requestIdleCallback ?? setTimeout)(look);
else look();
