// The bell in the top bar is renewed when the page is seen again; nothing is asked for out of sight.
const renew = () => document.hidden || document.getElementById("notice-bell")?.dispatchEvent(new Event("renew"));

document.addEventListener("visibilitychange", renew);
