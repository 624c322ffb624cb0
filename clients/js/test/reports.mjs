// The tests of the package: the same file in Node and in a browser. `vectors` were made by Python.

import { lawOf, overBits } from "./enumerate.mjs";

export const tests = {};

function equal(found, wanted, what) {
  const [a, b] = [found, wanted].map((one) => JSON.stringify(one, (_, v) => (typeof v === "bigint" ? String(v) : v)));
  if (a !== b) throw new Error(`${what}: ${a.slice(0, 300)} is not ${b.slice(0, 300)}`);
}

function holds(fact, what) {
  if (!fact) throw new Error(what);
}

async function refuses(code, call) {
  try {
    await call();
  } catch (error) {
    equal(error.code, code, `the code of "${error.message}"`);
    return error;
  }
  throw new Error(`nothing is refused with ${code}`);
}

const fromHex = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (two) => parseInt(two, 16));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A law as text: outcomes in order, with probabilities as fractions. */
const written = (law) => [...law].map(([key, [part, whole]]) => `${key} ${part}/${whole}`).sort();

/** A memory that lasts as long as a test. */
function memory() {
  const kept = new Map();
  return { kept, getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
}

// --- laws -----------------------------------------------------------------------------------------------------

tests["the law of every local report is Python's, exactly"] = async ({ vectors, parts }) => {
  const { reportOf } = await parts("oracles");
  await parts("all");
  holds(vectors.surveys.length > 10, "there are laws to compare");
  for (const { name, task, value, law } of vectors.surveys)
    equal(written(lawOf((draws) => reportOf(JSON.parse(task).survey, value, draws))), law, name);
};

tests["the law of the messages of every poll is Python's, exactly"] = async ({ vectors, parts }) => {
  const { messagesOf } = await parts("polls");
  await parts("all");
  holds(vectors.polls.length > 10, "there are laws to compare");
  for (const { name, task, value, law } of vectors.polls)
    equal(written(lawOf((draws) => messagesOf(JSON.parse(task).protocol, value, draws))), law, name);
};

tests["a uniform number is as likely as every other, bit by bit"] = async ({ parts }) => {
  const { drawsFrom } = await parts("exact");
  for (const bound of [1n, 2n, 3n, 5n, 6n, 7n, 100n, 255n, 256n]) {
    const { found, open } = overBits(16, (random) => drawsFrom(random).below(bound));
    const counts = [...found.values()];
    equal(counts.length, Number(bound), `outcomes below ${bound}`);
    holds(new Set(counts).size === 1, `all of ${bound} are as likely`);
    // it is drawn again with a probability of at most one half, so two tries leave at most a quarter open
    holds(open * 4n <= 65536n, `${open} of 65536 strings are open below ${bound}`);
  }
};

tests["a coin has its probability, bit by bit"] = async ({ parts }) => {
  const { drawsFrom } = await parts("exact");
  for (const [part, whole] of [[0n, 1n], [1n, 3n], [2n, 3n], [3n, 7n], [99n, 100n], [1n, 256n], [5n, 5n]]) {
    const { found } = overBits(16, (random) => drawsFrom(random).coin([part, whole]));
    const [heads, tails] = ["true", "false"].map((side) => found.get(side) ?? 0n);
    equal(heads * (whole - part), tails * part, `a coin of ${part}/${whole}`);
  }
};

tests["numbers of a task mean their decimal digits"] = async ({ vectors, parts }) => {
  const { ratio } = await parts("exact");
  for (const [json, part, whole] of vectors.numbers) {
    const [a, b] = ratio(JSON.parse(json));
    equal(a * BigInt(whole), BigInt(part) * b, json);
  }
  for (const wrong of ["1", null, true, NaN, Infinity, [1, 2]]) await refuses("task-unreadable", () => ratio(wrong));
};

tests["drawn frequencies are those of the law"] = async ({ draws: count, parts }) => {
  const { drawsFrom } = await parts("exact");
  const { webCrypto } = await parts("suite");
  const { reportOf } = await parts("oracles");
  const { messagesOf } = await parts("polls");
  const draws = drawsFrom(webCrypto.random);
  const { discreteLaplace } = await parts("laplace");
  const oracle = { method: "direct", size: 5, odds: 3 };
  const steps = Array.from({ length: 41 }, (_, step) => Math.exp(-Math.abs(step - 20) * 0.4));
  const all = (1 + Math.exp(-0.4)) / (1 - Math.exp(-0.4));
  const laplace = () => {
    const step = Number(discreteLaplace([5n, 2n], draws)) + 20;
    return step < 0 || step > 40 ? 41 : step;
  };
  const cases = [
    ["below 1000", 1000, () => Number(draws.below(1000n))],
    ["bytes below 200", 200, () => Number(draws.below(200n))],
    ["a coin", [0.3, 0.7], () => Number(!draws.coin([3n, 10n]))],
    ["response", [3 / 7, 1 / 7, 1 / 7, 1 / 7, 1 / 7], () => reportOf({ kind: "numbers", oracle }, 0, draws)],
    ["Laplace", [...steps.map((one) => one / all), 2 * Math.exp(-0.4 * 21) / (1 - Math.exp(-0.4)) / all], laplace],
    ["a turned bit", [0.25, 0.75], () => Number(messagesOf({ kind: "bit sum", lie: 0.25 }, 1, draws)[0])],
  ];
  for (const [name, law, draw] of cases) {
    const chances = typeof law === "number" ? Array(law).fill(1 / law) : law;
    const seen = chances.map(() => 0);
    for (let drawn = 0; drawn < count; drawn++) seen[draw()]++;
    const off = seen.reduce((sum, one, place) => sum + (one - count * chances[place]) ** 2 / (count * chances[place]), 0);
    const free = chances.length - 1;
    // six deviations of χ²: a right sampler fails once in millions of runs. With 10^6 draws, a coin that is off by
    // 0.005, or a uniform number of 1000 whose bits favor some by 2%, is found with a probability above 99%
    holds(off < free + 6 * Math.sqrt(2 * free) + 20, `${name}: χ² is ${off.toFixed(1)} with ${free} degrees of freedom`);
  }
};

// --- hashes and sealing ---------------------------------------------------------------------------------------

tests["hashes are Python's"] = async ({ vectors, parts }) => {
  const { blake2b, shake256 } = await parts("hashes");
  for (const { data, length, person, digest } of vectors.blake2b)
    equal(toHex(blake2b(fromHex(data), length, fromHex(person))), digest, `BLAKE2b of ${data.length / 2} bytes`);
  for (const { data, digest } of vectors.shake256)
    equal(toHex(shake256(fromHex(data), digest.length / 2)), digest, `SHAKE256 of ${data.length / 2} bytes`);
};

tests["keys are RFC 9180's, by its vector A.1.1"] = async ({ vectors, parts, suites }) => {
  const { sealer } = await parts("hpke");
  const { rfc9180: known } = vectors;
  for (const suite of await suites()) {
    const seen = [];
    const fixed = {
      ...suite,
      exchange: async () => ({ own: fromHex(known.enc), shared: fromHex(known.dh) }),
      encrypt: async (key, nonce, data) => {
        seen.push(toHex(key), toHex(nonce));
        return suite.encrypt(key, nonce, data);
      },
    };
    const sealed = await (await sealer(fixed, fromHex(known.pkRm), fromHex(known.info)))(fromHex("01020304"));
    equal(seen, [known.key, known.base_nonce], "the key and the nonce");
    equal(toHex(sealed), known.enc + known.sealed, "what is sealed");
  }
};

tests["two ways to exchange keys share the same secret"] = async ({ suites }) => {
  const made = await suites();
  for (const suite of made) {
    const first = await suite.exchange(fromHex("09" + "00".repeat(31))); // the base point: what is shared is the key itself
    equal(toHex(first.own), toHex(first.shared), "the public key");
    equal(first.own.length, 32, "its length");
  }
};

// --- surveys --------------------------------------------------------------------------------------------------

tests["a wrong answer is refused, and the error does not hold it"] = async ({ vectors, entry }) => {
  const { survey } = await entry("index");
  const { task, taken } = vectors.daily;
  for (const value of ["Daily", "daily ", "secret", 3, null, undefined, {}, ["daily"]]) {
    const error = await refuses("unknown-answer", () => survey(task).encode(value));
    for (const text of [error.message, String(error.stack)]) holds(!/Daily|secret/.test(text), "the answer is not told");
  }
  for (const value of taken) holds(Number.isInteger(await survey(task).encode(value)), "a report is a number");
};

tests["true and 1 are one answer, 1 and \"1\" are two"] = async ({ parts }) => {
  const { placeAmong, placeBelow } = await parts("values");
  equal(placeAmong(["1", 1, 0], true), 1n, "true");
  equal(placeAmong(["1", 1, 0], "1"), 0n, "text");
  equal(placeBelow(2n, false), 0n, "false");
  for (const wrong of [2, -1, 0.5, "0", NaN, null]) await refuses("unknown-answer", () => placeBelow(2n, wrong));
  await refuses("not-supported", () => placeAmong([2 ** 60, 1], 1));
};

tests["a pinned hash refuses every other task"] = async ({ vectors, entry }) => {
  const { survey, poll } = await entry("index");
  const { task, hash } = vectors.daily;
  await survey(task, { hash }).encode("daily");
  await survey(new TextEncoder().encode(task), { hash: hash.toUpperCase() }).encode("daily");
  await refuses("wrong-task", () => survey(`${task} `, { hash }).encode("daily"));
  await refuses("wrong-task", () => poll(vectors.poll.task, { shuffler: "http://127.0.0.1:1", hash }).seal("a"));
  await refuses("task-unreadable", () => survey(vectors.poll.task).encode("daily"));
  await refuses("task-unreadable", () => survey("{").encode("daily"));
};

tests["a repeated survey draws an answer once for each value"] = async ({ vectors, entry }) => {
  const { survey } = await entry("index");
  const kept = memory();
  const first = [];
  for (const value of ["daily", "never"]) first.push(await survey(vectors.repeated.task, { memory: kept }).encode(value));
  for (let round = 0; round < 40; round++)
    equal(await survey(vectors.repeated.task, { memory: kept }).encode(round % 2 ? "never" : "daily"), first[round % 2], "a round");
  equal(kept.kept.size, 2, "answers that are kept");
  await survey(vectors.fresh.task, { memory: kept }).encode("daily");
  equal(kept.kept.size, 3, "answers to another survey");
  const rounds = new Set();
  const fresh = memory();
  for (let round = 0; round < 200; round++) rounds.add(await survey(vectors.fresh.task, { memory: fresh }).encode("daily"));
  equal(fresh.kept.size, 1, "permanent answers");
  equal(rounds.size, 3, "different reports"); // of 200 with odds of 2, all three choices come up but once in 10^9
};

tests["what needs the larger entry says so"] = async ({ vectors, entry }) => {
  const { survey } = await entry("index");
  for (const name of ["text", "sketch"]) {
    const error = await refuses("not-supported", () => survey(vectors.larger[name]).encode("x"));
    holds(error.message.includes("@discreet/reports/all"), error.message);
  }
  for (const kind of ["__proto__", "constructor", "toString", "nothing"]) {
    const task = (facts) => JSON.stringify({ format: "discreet/survey/v1", ...facts });
    await refuses("not-supported", () => survey(task({ survey: { kind } })).encode("x"));
    const oracle = { method: kind, size: 2, odds: 2 };
    await refuses("not-supported", () => survey(task({ survey: { kind: "numbers", oracle } })).encode(1));
  }
  const noise = { kind: "mean", low: 0, high: 1, mechanism: { scale: 4, grid: 4 } };
  const written = (described) => JSON.stringify({ format: "discreet/survey/v1", survey: described });
  await refuses("not-supported", () => survey(written(noise)).encode(0.5));
  const all = await entry("all");
  holds(Number.isFinite(await all.survey(written(noise)).encode(0.5)), "a number with Laplace noise");
  const sketch = JSON.parse(vectors.larger.sketch).survey;
  await refuses("not-supported", () => all.survey(written({ ...sketch, seed: 2 ** 53 })).encode("x"));
  // a place beyond the oracle's would be reported as it is
  await refuses("unknown-answer", () => all.survey(written({ kind: "text", oracle: { method: "direct", size: 3, odds: 2 } })).encode("x"));
  for (const name of ["text", "sketch"]) await all.survey(vectors.larger[name]).encode("x");
};

// --- polls ----------------------------------------------------------------------------------------------------

tests["an answer is sealed the same way for everybody"] = async ({ vectors, entry, suites, opened }) => {
  const { poll } = await entry("index");
  const { task, choices, length, token } = vectors.poll;
  const lengths = new Set();
  for (const suite of await suites())
    for (const choice of choices)
      for (let time = 0; time < 5; time++) {
        const made = await poll(task, { shuffler: "http://127.0.0.1:1", token, suite, memory: memory() }).seal(choice);
        lengths.add(made.report.length);
        opened?.push({ report: toHex(made.report), messages: made.messages.map(Number) });
      }
  equal([...lengths], [length], "the lengths of reports");
};

tests["a report is sent once, and the same bytes after a failure"] = async ({ vectors, entry }) => {
  const { poll } = await entry("index");
  const { task, token } = vectors.poll;
  const sent = [];
  const answers = [];
  const real = globalThis.fetch;
  globalThis.fetch = async (address, request) => {
    const place = sent.push([address, request, request.body && toHex(request.body)]);
    const status = answers.shift();
    if (status === undefined) throw new TypeError("the network is down");
    const issued = place.toString(16).padStart(96, token.slice(0, 1));
    return new Response(status === 200 && String(address).endsWith("token") ? fromHex(issued) : "x", { status });
  };
  try {
    const kept = memory();
    const made = () => poll(task, { shuffler: "https://shuffler.example/", token, memory: kept });
    answers.push(503, 500, 503, 503, 503);
    await refuses("unreachable", () => made().send("a"));
    answers.push(200);
    await made().send("b"); // what was sealed before is sent
    equal(new Set(sent.map(([, , body]) => body)).size, 1, "different bodies");
    equal(sent.length, 6, "requests");
    const [address, request] = sent[0];
    equal(address, "https://shuffler.example/v1/report", "the address");
    equal(request.headers, { "Content-Type": "application/octet-stream", Authorization: `Bearer ${token}` }, "headers");
    equal([request.credentials, request.referrerPolicy, request.cache, request.redirect], ["omit", "no-referrer", "no-store", "error"], "what is not sent");
    equal(await made().state(), "sent", "the state");
    await refuses("reported-already", () => made().send("a"));
    equal(sent.length, 6, "requests after the report");
    holds(![...kept.kept.values()].includes(sent[0][2]), "the report is forgotten");
    const other = poll(JSON.stringify({ ...JSON.parse(task), delta: 1e-9 }), { shuffler: "https://s.example", token, memory: kept });
    equal(await other.state(), null, "the state of another poll");
    answers.push(200);
    await other.send("a");
    sent.pop();
    for (const [status, code] of [[400, "not-accepted"], [409, "reported-already"], [410, "closed"], [404, "not-accepted"]]) {
      answers.push(status);
      await refuses(code, () => poll(task, { shuffler: "https://s.example", token, memory: memory() }).send("a"));
    }
    const again = memory(); // a rejected report is sent again as it is, and another token has a report of its own
    const tokens = [token, token, "ff".repeat(48)];
    for (const own of tokens) {
      answers.push(400);
      await refuses("not-accepted", () => poll(task, { shuffler: "https://s.example", token: own, memory: again }).send("a"));
    }
    const [one, two, three] = sent.slice(-3).map(([, , body]) => body);
    equal([one === two, two === three], [true, false], "the same bytes");
    const out = memory();
    const quiet = poll(task, { shuffler: "https://s.example", token, memory: out });
    await quiet.optOut();
    const before = sent.length;
    await refuses("opted-out", () => quiet.send("a"));
    equal([sent.length, await quiet.state()], [before, "out"], "after opting out");
    answers.push(200, 200);
    await poll(task, { shuffler: "https://s.example", memory: memory() }).send("a"); // an open poll hands out a token
    equal(sent.slice(-2).map(([to]) => to), ["https://s.example/v1/token", "https://s.example/v1/report"], "addresses");
    answers.push(400);
    await refuses("token-needed", () => poll(task, { shuffler: "https://s.example", memory: memory() }).send("a"));
    await refuses("not-accepted", () => poll(task, { shuffler: "https://s.example", token: "12", memory: memory() }).send("a"));
    await refuses("unknown-answer", () => poll(task, { shuffler: "https://s.example", token, memory: memory() }).send("A"));
  } finally {
    globalThis.fetch = real;
  }
};

tests["two clicks are one report, and who opts out meanwhile sends none"] = async ({ vectors, entry }) => {
  const { poll } = await entry("index");
  const { task, token } = vectors.poll;
  const sent = [];
  let afterToken = async () => {};
  const real = globalThis.fetch;
  globalThis.fetch = async (address) => {
    sent.push(address.split("/").at(-1));
    if (!address.endsWith("token")) return new Response("accepted\n");
    await afterToken();
    return new Response(crypto.getRandomValues(new Uint8Array(48)));
  };
  try {
    const kept = memory();
    const made = () => poll(task, { shuffler: "https://s.example", memory: kept });
    await made().seal("a");
    await refuses("unknown-answer", () => made().send("A"));
    equal(sent, [], "what is shown is not sent, and nothing of a wrong answer");
    const clicks = await Promise.allSettled([made().send("a"), made().send("a")]);
    equal(clicks.map(({ status, reason }) => reason?.code ?? status), ["fulfilled", "reported-already"], "two clicks");
    equal(sent.splice(0), ["token", "report"], "requests");
    const quiet = poll(task, { shuffler: "https://s.example", memory: memory() });
    afterToken = () => quiet.optOut();
    await refuses("opted-out", () => quiet.send("a"));
    equal([sent.splice(0), await quiet.state()], [["token"], "out"], "after opting out");
    const written = memory(); // one token, however it is written
    globalThis.fetch = async () => new Response("", { status: 400 });
    for (const own of [token.toLowerCase(), token.toUpperCase()])
      await refuses("not-accepted", () => poll(task, { shuffler: "https://s.example", token: own, memory: written }).send("a"));
    equal(written.kept.size, 1, "reports of one token");
  } finally {
    globalThis.fetch = real;
  }
};

/** Run all tests, or those whose name holds `only`. Returns what failed. */
export async function run(context, only = "") {
  const failed = [];
  let passed = 0;
  for (const [name, test] of Object.entries(tests)) {
    if (!name.includes(only)) continue;
    try {
      await test(context);
      passed++;
    } catch (error) {
      failed.push(`${name}: ${error.stack ?? error}`);
    }
  }
  return { passed, failed };
}
