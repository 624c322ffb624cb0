// The secret of a login link stands after its #: move it into the form, and out of the address bar and the history.
function takeSecret() {
  const secret = location.hash.slice(1);
  if (!secret || document.getElementById(secret)) return; // the link that skips to the content has a # too
  document.getElementById("link").value = secret;
  history.replaceState(null, "", location.pathname + location.search);
  document.querySelector("main button").focus();
}
addEventListener("hashchange", takeSecret); // the page was open already when the link was opened
takeSecret();
