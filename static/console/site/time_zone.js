// The browser's time zone, for users who did not choose one: the server reads it with the next page.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`tablero_zone=${zone}`)) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `tablero_zone=${zone}; path=/ui/; max-age=31536000; samesite=lax${secure}`;
}
