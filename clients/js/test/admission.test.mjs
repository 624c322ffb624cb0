// Tickets: the vectors of RFC 9474, and an issuer in this process. Run with: node --test test/admission.test.mjs [DIST]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterEach, test } from "node:test";
import { pathToFileURL } from "node:url";

const dist = resolve(process.env.DIST ?? "dist");
const { admit, blindBy, bytesOf, encode, finalize, inverseOf, power } = await import(
  pathToFileURL(`${dist}/admission.js`).href
);
const { vectors } = JSON.parse(readFileSync(new URL("../../../tests/vectors/rfc9474.json", import.meta.url), "utf8"));
const fromHex = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (two) => parseInt(two, 16));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const number = (digits) => BigInt(`0x${digits}`);

const own = { ...vectors[0] };
const [p, q] = [number(own.p), number(own.q)];
const modulus = p * q;
const key = modulus.toString(16);
const secret = inverseOf(65537n, (p - 1n) * (q - 1n));
const VOUCHER = "0123456789abcdef0123456789abcdef";
const taskWith = (admission) => JSON.stringify({ format: "discreet/shuffle/v1", admission });
const TASK = taskWith({ scheme: "RSABSSA-SHA384-PSS-Randomized", key });

function memory() {
  const kept = new Map();
  return { kept, getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => void kept.set(name, value) };
}

const network = globalThis.fetch;
afterEach(() => void (globalThis.fetch = network));

/** An issuer that signs one message for each voucher. `answers` come first. */
function issuer(...answers) {
  const seen = [];
  const used = new Map();
  globalThis.fetch = async (url, { headers, body, ...rest }) => {
    seen.push({ url, headers, body: toHex(body), rest });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    if (next) return new Response(next.body ?? "", { status: next.status ?? 200 });
    if (used.has(headers.Authorization) && used.get(headers.Authorization) !== toHex(body))
      return new Response("used", { status: 409 });
    used.set(headers.Authorization, toHex(body));
    return new Response(bytesOf(power(number(toHex(body)), secret, modulus), 512));
  };
  return seen;
}

const refused = (code) => (error) => error.code === code;

test("the vectors of the RFC, step by step", async () => {
  for (const vector of vectors) {
    const message = fromHex(vector.msg_prefix + vector.msg);
    const encoded = await encode(message, modulus.toString(2).length - 1, fromHex(vector.salt));
    assert.equal(encoded, number(vector.encoded_msg));
    const inverse = number(vector.inv);
    const made = blindBy(modulus, encoded, inverseOf(inverse, modulus));
    assert.deepEqual(made, { sent: number(vector.blinded_msg), inverse });
    assert.equal(finalize(modulus, made, number(vector.blind_sig)), number(vector.sig));
    assert.equal(finalize(modulus, made, number(vector.blind_sig) + 1n), null);
    assert.equal(finalize(modulus, made, number(vector.blind_sig) + modulus), null);
  }
});

test("powers and inverses", () => {
  for (let a = 0n; a < 40n; a++) {
    assert.equal(power(a, 13n, 91n), a ** 13n % 91n);
    const inverse = inverseOf(a, 91n);
    if (a % 7n && a % 13n) assert.equal((a * inverse) % 91n, 1n);
    else assert.equal(inverse, null);
  }
});

test("a blinded message is uniform, whatever the message is", () => {
  const units = [];
  for (let one = 1n; one < 187n; one++) if (inverseOf(one, 187n) !== null) units.push(one);
  assert.equal(units.length, 160);
  for (const plain of units)
    assert.deepEqual(units.map((factor) => blindBy(187n, plain, factor).sent).sort((a, b) => Number(a - b)), units);
  for (const bad of [0n, 11n, 17n, 187n]) {
    assert.equal(blindBy(187n, bad, 2n), null);
    assert.equal(blindBy(187n, 2n, bad), null);
  }
});

test("a ticket that WebCrypto verifies, and that names its client", async () => {
  const [seen, kept] = [issuer(), memory()];
  const ticket = fromHex(await admit(TASK, { issuer: "https://issuer.example/", voucher: ` ${VOUCHER.toUpperCase()}`, memory: kept }));
  assert.equal(ticket.length, 16 + 64 + 512);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(TASK)));
  const message = Uint8Array.from([
    ...ticket.slice(16, 48), ...new TextEncoder().encode("discreet/shuffle/v1/admission"), ...hash, ...ticket.slice(48, 80),
  ]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", message));
  assert.deepEqual(ticket.slice(0, 16), digest.slice(0, 16));
  const n = Buffer.from(key, "hex").toString("base64url");
  const kind = { name: "RSA-PSS", hash: "SHA-384" };
  const verifier = await crypto.subtle.importKey("jwk", { kty: "RSA", n, e: "AQAB" }, kind, false, ["verify"]);
  assert.ok(await crypto.subtle.verify({ name: "RSA-PSS", saltLength: 48 }, verifier, ticket.slice(80), message));
  assert.equal(seen.length, 1);
  assert.equal(seen[0].url, "https://issuer.example/v1/admit");
  assert.equal(seen[0].headers.Authorization, `Bearer ${VOUCHER}`);
  assert.equal(seen[0].body.length, 1024);
  assert.equal(seen[0].rest.credentials, "omit");
  // nothing of the ticket was in the request, and not what is signed either
  assert.notEqual(number(seen[0].body), power(number(toHex(ticket.slice(80))), 65537n, modulus));
  for (const part of [ticket.slice(16, 48), ticket.slice(48, 80), ticket.slice(80)]) assert.ok(!seen[0].body.includes(toHex(part)));
});

test("any ticket can be of any request", async () => {
  const seen = issuer();
  const vouchers = [1, 2, 3].map((digit) => String(digit).repeat(32));
  const tickets = [];
  for (const voucher of vouchers) tickets.push(await admit(TASK, { issuer: "", voucher, memory: memory() }));
  for (const { body } of seen)
    for (const ticket of tickets) {
      const signature = number(ticket.slice(160));
      const factor = (power(number(body), secret, modulus) * inverseOf(signature, modulus)) % modulus;
      const explained = blindBy(modulus, power(signature, 65537n, modulus), factor);
      assert.equal(explained.sent, number(body));
    }
  assert.equal(new Set(tickets).size, 3);
});

test("a lost answer costs nothing, and a ticket is remembered", async () => {
  const kept = memory();
  const seen = issuer(new Error("lost"), { status: 503 });
  const first = await admit(TASK, { issuer: "", voucher: VOUCHER, memory: kept });
  assert.equal(new Set(seen.map(({ body }) => body)).size, 1);
  assert.equal(seen.length, 3);
  assert.equal(await admit(TASK, { issuer: "", voucher: VOUCHER, memory: kept }), first);
  assert.equal(seen.length, 3);
  assert.ok(![...kept.kept.keys()].some((name) => name.includes(VOUCHER)));
  await assert.rejects(admit(TASK, { issuer: "", voucher: VOUCHER, memory: memory() }), refused("voucher-used"));
  const other = await admit(TASK, { issuer: "", voucher: "f".repeat(32), memory: kept }); // another person, the same device
  assert.notEqual(other, first);
});

test("after a reload, the same request is sent", async () => {
  const kept = memory();
  const lost = Array.from({ length: 5 }, () => new Error("lost"));
  const seen = issuer(...lost);
  await assert.rejects(admit(TASK, { issuer: "", voucher: VOUCHER, memory: kept }), refused("unreachable"));
  await admit(TASK, { issuer: "", voucher: VOUCHER, memory: kept });
  assert.equal(new Set(seen.map(({ body }) => body)).size, 1);
});

test("what the issuer did not sign is refused", async () => {
  for (const body of ["", new Uint8Array(512), new Uint8Array(511).fill(1), new Uint8Array(512).fill(255), bytesOf(5n, 512)]) {
    issuer({ body });
    await assert.rejects(admit(TASK, { issuer: "", voucher: VOUCHER, memory: memory() }), refused("issuer-answer"));
  }
  issuer({ status: 400 });
  await assert.rejects(admit(TASK, { issuer: "", voucher: VOUCHER, memory: memory() }), refused("not-accepted"));
});

test("short and bad keys, other schemes and other tasks are refused before anything is sent", async () => {
  const seen = issuer();
  const scheme = "RSABSSA-SHA384-PSS-Randomized";
  const bad = [
    undefined, {}, { scheme }, { scheme, key: "" }, { scheme: "RSA", key }, { scheme, key: `${key.slice(0, 509)}1` },
    { scheme, key: `${key}ab` }, { scheme, key: `0${key.slice(1)}` }, { scheme, key: `${key.slice(0, -1)}4` },
    { scheme, key: `${"f".repeat(512)}f` }, { scheme, key: `${"g".repeat(511)}1` },
  ];
  for (const one of bad)
    await assert.rejects(admit(taskWith(one), { issuer: "", voucher: VOUCHER, memory: memory() }), refused("task-unreadable"));
  for (const voucher of ["", "Ada", VOUCHER.slice(1), `${VOUCHER}0`])
    await assert.rejects(admit(TASK, { issuer: "", voucher, memory: memory() }), refused("not-accepted"));
  await assert.rejects(admit(TASK, { issuer: "", voucher: VOUCHER, memory: memory(), hash: "00" }), refused("wrong-task"));
  assert.equal(seen.length, 0);
});

test("two calls at once send one request", async () => {
  const kept = memory();
  const seen = issuer();
  const ask = () => admit(TASK, { issuer: "", voucher: VOUCHER, memory: kept });
  const [first, second] = await Promise.all([ask(), ask()]);
  assert.equal(first, second);
  assert.equal(new Set(seen.map(({ body }) => body)).size, 1);
});
