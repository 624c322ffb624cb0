/**
 * One person, one report: a ticket that an issuer signs for a voucher without seeing it, and the shuffler takes once.
 * Blind RSA signatures by RFC 9474, RSABSSA-SHA384-PSS-Randomized. Only public numbers are raised to a power here.
 */

import { ReportError } from "./errors.js";
import { drawsFrom } from "./exact.js";
import { integerOf } from "./hashes.js";
import { joined, text } from "./hpke.js";
import { type Bytes, type Suite, webCrypto } from "./suite.js";
import { hex, type Options, ownMemory, read, type TaskBytes, unhex } from "./task.js";

const FORMAT = "discreet/shuffle/v1";
const SCHEME = "RSABSSA-SHA384-PSS-Randomized";
const EXPONENT = 65537n;
const TRIES = 5;

export interface AdmitOptions extends Options {
  /** The address of the issuer. */
  issuer: string;
  /** What the person was given: 32 hexadecimal digits. */
  voucher: string;
}

/** What is sent to the issuer, and what undoes it, which stays here. */
export interface Blinded {
  sent: bigint;
  inverse: bigint;
}

/** A number as bytes of this length. */
export const bytesOf = (number: bigint, length: number): Bytes => unhex(number.toString(16).padStart(2 * length, "0"));

const sha384 = async (data: Bytes): Promise<Bytes> => new Uint8Array(await crypto.subtle.digest("SHA-384", data));

/** base^exponent modulo a number. */
export function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base % modulus];
  for (; exponent; exponent >>= 1n) {
    if (exponent & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The inverse modulo a number, or null if there is none. */
export function inverseOf(value: bigint, modulus: bigint): bigint | null {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n];
  while (a) [a, b, x, y] = [b % a, a, y - (b / a) * x, x];
  return b === 1n ? ((y % modulus) + modulus) % modulus : null;
}

/** EMSA-PSS (RFC 8017, section 9.1.1) with SHA-384: a message as a number of at most `bits` bits. */
export async function encode(message: Bytes, bits: number, salt: Bytes): Promise<bigint> {
  const length = (bits + 7) >> 3;
  const tag = await sha384(joined(new Uint8Array(8), await sha384(message), salt));
  const room = length - tag.length - 1;
  const block = joined(new Uint8Array(room - salt.length - 1), Uint8Array.of(1), salt);
  for (let start = 0; start < room; start += 48) {
    const mask = await sha384(joined(tag, bytesOf(BigInt(start / 48), 4)));
    mask.slice(0, room - start).forEach((byte, place) => (block[start + place]! ^= byte));
  }
  block[0]! &= 255 >> (8 * length - bits);
  return integerOf(joined(block, tag, Uint8Array.of(0xbc)));
}

/** An encoded message, multiplied by factor^e. Null if one of them has no inverse. */
export function blindBy(modulus: bigint, encoded: bigint, factor: bigint): Blinded | null {
  const inverse = inverseOf(factor, modulus);
  if (inverse === null || inverseOf(encoded, modulus) === null) return null;
  return { sent: (encoded * power(factor, EXPONENT, modulus)) % modulus, inverse };
}

/** The signature, if it is one of what was blinded. Null if the issuer did not sign it with this key. */
export function finalize(modulus: bigint, { sent, inverse }: Blinded, answer: bigint): bigint | null {
  const encoded = (sent * power(inverse, EXPONENT, modulus)) % modulus;
  const signature = (answer * inverse) % modulus;
  return answer < modulus && power(signature, EXPONENT, modulus) === encoded ? signature : null;
}

async function blind(modulus: bigint, message: Bytes, suite: Suite): Promise<Blinded> {
  const draws = drawsFrom(suite.random);
  for (;;) {
    const encoded = await encode(message, modulus.toString(2).length - 1, suite.random(48));
    const made = blindBy(modulus, encoded, draws.below(modulus));
    if (made) return made;
  }
}

/** The issuer's key, if it is long enough and odd. */
function modulusIn(facts: any): bigint {
  const { scheme, key } = facts.admission ?? {};
  if (scheme !== SCHEME || !/^[89a-f][0-9a-f]{511,1023}$/.test(key) || key.length % 2 || !/[13579bdf]$/.test(key))
    throw new ReportError("task-unreadable", "The task has no issuer with an RSA key of 2048 to 4096 bits.");
  return BigInt(`0x${key}`);
}

async function signed(issuer: string, voucher: string, sent: Bytes): Promise<Bytes> {
  for (let wait = 0; ; wait++) {
    const answer = await fetch(`${issuer.replace(/\/+$/, "")}/v1/admit`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream", Authorization: `Bearer ${voucher}` },
      body: sent,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    }).catch(() => null);
    if (answer?.ok) return new Uint8Array(await answer.arrayBuffer());
    if (answer?.status === 409) throw new ReportError("voucher-used", "The voucher was used on another device.");
    if (answer && answer.status < 500) throw new ReportError("not-accepted", "The voucher is not one of the issuer's.");
    if (wait >= TRIES - 1) throw new ReportError("unreachable", "The issuer cannot be reached. Try again.");
    await new Promise((done) => setTimeout(done, 100 * 2 ** wait));
  }
}

/**
 * The token of a person, for `poll(task, { token })`. The issuer learns that the person takes part. Neither it nor the
 * shuffler can tell which ticket is whose, even together.
 *
 * The issuer signs one request for each voucher, so the request is remembered before it is sent.
 */
export async function admit(task: TaskBytes, options: AdmitOptions): Promise<string> {
  const suite = options.suite ?? webCrypto;
  const memory = options.memory ?? ownMemory();
  const voucher = options.voucher.trim().toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(voucher)) throw new ReportError("not-accepted", "A voucher has 32 hexadecimal digits.");
  const { facts, hash } = await read(task, FORMAT, suite, options.hash);
  const modulus = modulusIn(facts);
  const length = facts.admission.key.length / 2;
  const name = hex(await suite.sha256(text(`${FORMAT}/request${voucher}`))).slice(0, 16);
  const key = `discreet/${hex(hash)}/ticket/${name}`;
  const messageOf = (drawn: Bytes): Bytes =>
    joined(drawn.slice(0, 32), text(`${FORMAT}/admission`), hash, drawn.slice(32));

  const remembered = (): any => JSON.parse(memory.getItem(key) ?? "null");
  let kept = remembered();
  if (kept?.ticket) return kept.ticket;
  if (!kept) {
    const drawn = suite.random(64);
    const made = await blind(modulus, messageOf(drawn), suite);
    kept = remembered(); // another call may have been faster: the issuer signs one request
    if (kept?.ticket) return kept.ticket;
    if (!kept) {
      kept = { drawn: hex(drawn), sent: hex(bytesOf(made.sent, length)), inverse: hex(bytesOf(made.inverse, length)) };
      memory.setItem(key, JSON.stringify(kept));
    }
  }
  const blinded = { sent: BigInt(`0x${kept.sent}`), inverse: BigInt(`0x${kept.inverse}`) };
  const answer = await signed(options.issuer, voucher, unhex(kept.sent));
  const signature = answer.length === length ? finalize(modulus, blinded, integerOf(answer)) : null;
  if (signature === null)
    throw new ReportError("issuer-answer", "The issuer did not sign with the key of the task. Do not take part.");
  const client = (await suite.sha256(messageOf(unhex(kept.drawn)))).slice(0, 16);
  const ticket = hex(client) + kept.drawn + hex(bytesOf(signature, length));
  memory.setItem(key, JSON.stringify({ ticket }));
  return ticket;
}
