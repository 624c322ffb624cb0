// The page to ask: a plan while one types, a slider for ε, the refused part underlined, names to insert.
import { postForm } from "./fragments.js";
import { complete, insertText } from "./complete.js";

const form = document.getElementById("ask");
const sql = document.getElementById("sql");
const epsilon = document.getElementById("epsilon");
const slider = document.getElementById("epsilon-slider");
const plan = document.getElementById("plan");
const place = document.getElementById("within-place");
const ask = document.getElementById("ask-now");

let waiting = 0, running = null, asked = "";

// --- the refused part, underlined behind the text ---
const shadow = document.createElement("div");
shadow.className = "shadow";
shadow.setAttribute("aria-hidden", "true");
sql.before(shadow);

function underline(start, length) {
  const text = sql.value;
  shadow.replaceChildren();
  if (start === null || start >= text.length + 1) return;
  const wrong = document.createElement("mark");
  wrong.textContent = text.slice(start, start + length) || " ";
  shadow.append(text.slice(0, start), wrong, text.slice(start + length));
  shadow.scrollTop = sql.scrollTop;
}
sql.addEventListener("scroll", () => { shadow.scrollTop = sql.scrollTop; });

// Places are counted in characters; texts of scripts are counted in halves of some of them.
function placed(characters) {
  let units = 0;
  for (const character of sql.value) {
    if (characters-- <= 0) break;
    units += character.length;
  }
  return units;
}

function readPlan() {
  const body = document.getElementById("plan-body");
  if (body?.dataset.position) {
    const start = Number(body.dataset.position);
    const from = placed(start);
    underline(from, placed(start + Number(body.dataset.length)) - from);
  } else {
    underline(null, 0);
  }
  if (body?.dataset.epsilon && form.querySelector("[name=by][value=within]").checked) {
    epsilon.value = Number(Number(body.dataset.epsilon).toPrecision(4)); // what the error costs
    followEpsilon();
    asked = new URLSearchParams(new FormData(form)).toString();
  }
  const instead = document.getElementById("use-instead");
  instead?.addEventListener("click", (event) => {
    event.preventDefault();
    insertText(sql, document.getElementById("instead").textContent, 0, sql.value.length);
    planSoon(0);
  });
}

// --- the plan ---

function planSoon(after = 350) {
  clearTimeout(waiting);
  waiting = setTimeout(showPlan, after);
}

async function showPlan() {
  running?.abort();
  running = new AbortController();
  const said = new URLSearchParams(new FormData(form)).toString();
  if (said === asked) return;
  plan.setAttribute("aria-busy", "true");
  try {
    const nodes = await postForm("/ask/plan", form, running.signal);
    if (nodes === null) {
      plan.textContent = "The plan cannot be shown now. If you were logged out, load the page again.";
      return;
    }
    asked = said;
    const fields = nodes.getElementById("within-fields");
    takeFields(fields);
    replacePlan(nodes);
    readPlan();
    const link = document.getElementById("plan-body").dataset.link;
    history.replaceState(null, "", link);
  } catch (error) {
    if (error.name !== "AbortError") plan.textContent = "The gateway does not respond. Try again.";
  } finally {
    plan.removeAttribute("aria-busy");
  }
}

// What was unfolded stays so, and so does the focus.
function replacePlan(nodes) {
  const isOpen = plan.querySelector("details")?.open ?? false, hasFocus = plan.contains(document.activeElement);
  plan.replaceChildren(...nodes.children);
  const details = plan.querySelector("details");
  if (details) details.open = isOpen;
  if (hasFocus) (details?.querySelector("summary") ?? plan.querySelector("a") ?? ask).focus();
}

// Fields for errors keep what is typed into them: they change only if the columns do.
function takeFields(fields) {
  const names = (of) => [...of.querySelectorAll("[name=of]")].map((one) => one.value).join("\n");
  const old = place.firstElementChild;
  if (old && names(old) === names(fields)) {
    const shown = old.querySelectorAll("[name=within]");
    fields.querySelectorAll("[name=within]").forEach((one, at) => { shown[at].placeholder = one.placeholder; });
    fields.remove();
  } else if (old && old.contains(document.activeElement)) {
    fields.remove();
  } else {
    place.replaceChildren(fields);
  }
}

// --- ε as a slider, on a logarithmic scale ---
const most = Math.log10(Number(slider.dataset.most) || 10);
slider.min = most - 3;
slider.max = most;
slider.closest("[hidden]").hidden = false;

function followEpsilon() {
  const value = Number(epsilon.value.replace(",", "."));
  if (value > 0) slider.value = Math.log10(value);
  slider.setAttribute("aria-valuetext", `ε = ${epsilon.value}`);
}
function choose(by) {
  const one = form.querySelector(`[name=by][value=${by}]`);
  if (!one.checked) one.checked = true;
}
slider.addEventListener("input", () => {
  epsilon.value = Number((10 ** slider.value).toPrecision(2));
  slider.setAttribute("aria-valuetext", `ε = ${epsilon.value}`);
  choose("epsilon");
  planSoon(120);
});
epsilon.addEventListener("input", () => { followEpsilon(); choose("epsilon"); planSoon(); });
place.addEventListener("input", () => { choose("within"); planSoon(); });
form.addEventListener("change", (event) => { if (event.target.name === "by") planSoon(0); });
sql.addEventListener("input", () => { underline(null, 0); planSoon(); });

// --- names on the left ---
for (const one of document.querySelectorAll(".declared [data-insert]")) {
  const button = one.tagName === "BUTTON" ? one : document.createElement("button");
  if (button !== one) {
    button.type = "button";
    button.className = "name";
    button.dataset.insert = one.dataset.insert;
    button.textContent = one.textContent;
    button.title = "Insert into the question";
    one.replaceWith(button);
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    insertText(sql, button.dataset.insert);
    planSoon();
  });
}

// --- asking ---
form.addEventListener("submit", (event) => {
  if (event.submitter !== ask) return;
  if (ask.ariaDisabled === "true") return event.preventDefault();
  const seconds = Number(form.dataset.after);
  setTimeout(() => {
    ask.ariaDisabled = "true"; // a button that is disabled would lose the focus
    ask.textContent = seconds ? `Answers leave after ${seconds} s …` : "Asking …";
  });
});
const label = ask.textContent;
addEventListener("pageshow", (event) => {
  if (event.persisted) { ask.ariaDisabled = null; ask.textContent = label; }
});
sql.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); showPlan(); }
});

place.replaceChildren();
takeFields(document.getElementById("within-fields"));
document.getElementById("show-plan").classList.add("quiet");
followEpsilon();
readPlan();
complete(sql, form.dataset.names, () => planSoon());
