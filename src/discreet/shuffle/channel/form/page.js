// The form of a poll. The page is written by Python; this script sends one answer, and says what became of it.
{
  const ENDS = {
    sent: "Thank you. Your report was taken. You can close this page.",
    "reported-already": "Thank you. A report was already taken from this device or with this link. It counts once.",
    "opted-out": "You do not take part. Nothing is sent from this device, not even that you declined.",
    closed: "This poll is closed. Your answer is not counted.",
    "not-accepted": "This link is not one of this poll's. Open the whole link that you were given, or ask for another one.",
    "token-needed": "This link is not complete. Open the whole link that you were given, with everything after the #.",
    "wrong-task": "This page was changed, so nothing is sent. Tell whoever gave you the link.",
    insecure: "This page must be opened with https, so nothing is sent. Tell whoever gave you the link.",
  };
  const NOTHING_CHOSEN = "Choose an answer first.";
  const UNREACHABLE =
    "The poll cannot be reached. Check your connection, and press Send again: the same answer is sent, and counts once.";
  const FAILED = "This browser cannot seal your answer. Open the link in a newer one.";
  const REALLY = "Nothing will ever be sent from this device for this question. Is that what you want?";

  const at = (id) => document.getElementById(id);
  const { task, hash, shuffler } = at("poll").dataset;
  const token = location.hash.slice(1); // what follows the # is not sent to the server of this page
  const poll = discreet.poll(task, { shuffler, hash, ...(token && { token }) });

  function say(text) {
    at("said").textContent = text;
    at("said").focus();
  }

  function end(code) {
    at("ask").remove(); // with what was chosen: the next person at this device cannot see it
    say(ENDS[code]);
    if (["sent", "reported-already", "opted-out"].includes(code))
      history.replaceState(null, "", location.pathname + location.search); // the token is of no more use
  }

  function allow(choosing, sending) {
    at("answers").disabled = !choosing;
    at("send").disabled = at("decline").disabled = !sending;
  }

  function fail({ code }) {
    if (Object.hasOwn(ENDS, code)) end(code);
    else if (code === "unreachable") {
      allow(false, true); // what is sealed is sent again, so another choice would change nothing
      say(UNREACHABLE);
    } else {
      allow(true, true);
      say(FAILED);
    }
  }

  async function send() {
    const chosen = document.querySelector("input:checked");
    if (!chosen) return say(NOTHING_CHOSEN);
    allow(false, false);
    say("Sending …");
    await poll.send((JSON.parse(task).protocol.choices ?? [0, 1])[chosen.value]);
    end("sent");
  }

  async function decline() {
    if (!confirm(REALLY)) return;
    await poll.optOut();
    end("opted-out");
  }

  async function start() {
    if (!isSecureContext) return end("insecure");
    const state = await poll.state();
    if (state === "sent") end("reported-already");
    else if (state === "out") end("opted-out");
    else allow(true, true);
  }

  at("send").addEventListener("click", () => send().catch(fail));
  at("decline").addEventListener("click", () => decline().catch(fail));
  addEventListener("hashchange", () => location.reload()); // another link was opened in this tab
  start().catch(fail);
}
