// The secret of a login link stands after its #: move it into the form, and out of the address bar and the history.
const secret = location.hash.slice(1);
if (secret) {
  document.getElementById("link").value = secret;
  history.replaceState(null, "", location.pathname + location.search);
  document.querySelector("main button").focus();
}
