// The browser's time zone, for users who did not choose one: the server reads it with the next page. A page with times that
// was drawn before is loaded again, unless it says something that a reload would lose.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const { dataset } = document.documentElement;
const isKnown = () => document.cookie.split("; ").includes(`tablero_zone=${zone}`);

if (zone && !isKnown()) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `tablero_zone=${zone}; path=/ui/; max-age=31536000; samesite=lax${secure}`;
  const isWrong = "zoneOfBrowser" in dataset && dataset.zone !== zone && document.querySelector("main :is(time, [data-grid])");
  if (isWrong && isKnown() && !document.querySelector("#toasts > *")) location.reload();
}
