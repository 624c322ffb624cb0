// The form of a poll. The page is written by Python; this script sends one answer, and says what became of it.
{
  const at = (id) => document.getElementById(id);
  const { task, hash, shuffler, texts } = at("poll").dataset;
  const TEXTS = JSON.parse(texts); // what is said, by codes
  const ENDS = ["reported-already", "opted-out", "closed", "not-accepted", "token-needed", "wrong-task", "insecure"];
  const token = location.hash.slice(1); // what follows the # is not sent to the server of this page
  const poll = discreet.poll(task, { shuffler, hash, ...(token && { token }) });

  function say(text) {
    at("said").textContent = text;
    at("said").focus();
  }

  function end(code) {
    at("ask").remove(); // with what was chosen: the next person at this device cannot see it
    say(TEXTS[code]);
    if (["sent", "reported-already", "opted-out"].includes(code))
      history.replaceState(null, "", location.pathname + location.search); // the token is of no more use
  }

  function allow(choosing, sending) {
    at("answers").disabled = !choosing;
    at("send").disabled = at("decline").disabled = !sending;
  }

  function fail({ code }) {
    if (ENDS.includes(code)) end(code);
    else if (code === "unreachable") {
      allow(false, true); // what is sealed is sent again, so another choice would change nothing
      say(TEXTS.unreachable);
    } else {
      allow(true, true);
      say(TEXTS.failed);
    }
  }

  async function send() {
    const chosen = document.querySelector("input:checked");
    if (!chosen) return say(TEXTS.choose);
    allow(false, false);
    say(TEXTS.sending);
    await poll.send((JSON.parse(task).protocol.choices ?? [0, 1])[chosen.value]);
    end("sent");
  }

  async function decline() {
    if (!confirm(TEXTS.really)) return;
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
