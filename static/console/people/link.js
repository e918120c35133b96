// The token of a link is in its fragment, which browsers send to no server: it is posted, and taken out of the history.
const form = document.querySelector("form[data-link]");
const token = location.hash.match(/^#token=(.+)/)?.[1];

if (token) {
  history.replaceState(null, "", location.pathname);
  form.elements.token.value = token;
  form.submit();
}
