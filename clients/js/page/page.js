// Shows every step from an answer to the bytes that leave. With ?shuffler=https://…&hash=…&token=… it takes part in a
// real poll; without, it is a survey of its own that sends nothing.

const SURVEY =
  '{"format":"discreet/survey/v1","survey":{"choices":["never","sometimes","daily"],"delta":0,"epsilon":1,"kind":"choices","oracle":{"method":"direct","odds":2.71828182845904,"size":3}}}';

const { poll, survey } = globalThis.discreet;
const given = new URLSearchParams(location.search);
const shuffler = given.get("shuffler");
const at = (id) => document.getElementById(id);
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
let chosen;

/** A list item of text and code. */
function step(...parts) {
  const item = document.createElement("li");
  parts.forEach((part, place) => {
    const piece = document.createElement(place % 2 ? "code" : "span");
    piece.textContent = part;
    item.append(piece);
  });
  return item;
}

async function show(task, choices, run) {
  const bytes = new Uint8Array(task);
  at("task").textContent =
    `SHA-256 ${hexOf(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)))}\n\n${new TextDecoder().decode(bytes)}`;
  for (const choice of choices) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = String(choice);
    button.addEventListener("click", () => {
      chosen = choice;
      for (const one of at("answers").children) one.setAttribute("aria-pressed", String(one === button));
      void run().catch((error) => (at("problem").textContent = error.message));
    });
    at("answers").append(button);
  }
  at("again").addEventListener("click", () => void run());
}

async function local(task) {
  const { choices, oracle } = JSON.parse(new TextDecoder().decode(task)).survey;
  const one = survey(task);
  const truth = (100 * oracle.odds) / (oracle.odds + choices.length - 1);
  await show(task, choices, async () => {
    const report = await one.encode(chosen);
    at("steps").replaceChildren(
      step("You chose ", chosen, `. It is reported as it is ${truth.toFixed(0)} times in 100, and otherwise as another choice, each as often.`),
      step("This time, the device drew ", choices[report], "."),
      step("All that would leave the device: ", String(report), ", the number of that choice."),
    );
    const seen = choices.map(() => 0);
    for (let time = 0; time < 1000; time++) seen[await one.encode(chosen)]++;
    at("bars").replaceChildren(
      ...choices.map((choice, place) => {
        const row = document.createElement("div");
        row.className = "bar";
        const [name, bar, count] = ["span", "meter", "span"].map((kind) => document.createElement(kind));
        name.textContent = choice;
        Object.assign(bar, { max: 1000, value: seen[place], title: `${seen[place]} times` });
        bar.setAttribute("aria-label", `${choice}: ${seen[place]} of 1,000`);
        count.textContent = String(seen[place]);
        row.append(name, bar, count);
        return row;
      }),
    );
    at("many").hidden = at("made").hidden = false;
  });
}

async function shuffled() {
  const task = await (await fetch(`${shuffler}/v1/task`, { credentials: "omit" })).arrayBuffer();
  const { protocol, epsilon, delta, minimum } = JSON.parse(new TextDecoder().decode(task));
  const options = { shuffler, ...Object.fromEntries(["hash", "token"].flatMap((name) => (given.get(name) ? [[name, given.get(name)]] : []))) };
  const one = poll(task, options);
  await one.state(); // before anything in another task is shown
  at("about").textContent =
    `Promised to you: ε = ${epsilon}, δ = ${delta}, if the shuffler and the analyzer do not work together. ` +
    `Nothing is opened before ${minimum.toLocaleString("en")} people have answered.`;
  at("send").hidden = !options.hash; // a task that nobody has named may promise anything
  await show(task, protocol.choices ?? [0, 1], async () => {
    const { messages, report } = await one.seal(chosen);
    at("steps").replaceChildren(
      step("You chose ", String(chosen), ". It becomes these messages, in random order: ", messages.join(", "), ". The analyzer will see them among those of all others."),
      step("Each is sealed to the analyzer, and all of them once more to the shuffler. What leaves the device, the same ", `${report.length} bytes`, " long for every answer: ", hexOf(report)),
      step("Sent once, without cookies and without the address of this page, to ", `${shuffler}/v1/report`, "."),
    );
    at("made").hidden = false;
  });
  at("send").addEventListener("click", async () => {
    at("send").disabled = true;
    try {
      await one.send(chosen);
      at("send").textContent = "Sent";
      at("again").disabled = true;
    } catch (error) {
      at("send").disabled = false;
      at("problem").textContent = error.message;
    }
  });
}

const start = shuffler ? shuffled() : local(new TextEncoder().encode(SURVEY));
start.catch((error) => (at("problem").textContent = error.message));
