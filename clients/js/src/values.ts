/** What a person answers, as the place in a public domain that randomizers work on. A wrong answer is refused here. */

import { ReportError } from "./errors.js";
import { type Ratio, ratio } from "./exact.js";
import { blake2b, integerOf } from "./hashes.js";
import { text } from "./hpke.js";

/** The refusal of an answer. It does not hold the answer. */
export function refused(takes: string): ReportError {
  return new ReportError("unknown-answer", `The survey does not take this answer. It takes ${takes}.`);
}

/** True and false are 1 and 0, as in Python. */
const plain = (value: unknown): unknown => (typeof value === "boolean" ? Number(value) : value);

/** The place of an answer among the choices, to one of which it must be equal. */
export function placeAmong(choices: unknown[], value: unknown): bigint {
  if (choices.some((one) => Number.isInteger(one) && !Number.isSafeInteger(one)))
    throw new ReportError("not-supported", "A choice is a whole number beyond 2^53, which this client cannot read.");
  const place = choices.findIndex((one) => plain(one) === plain(value));
  if (place < 0) throw refused("one of its choices");
  return BigInt(place);
}

/** A whole number from 0 to size − 1. */
export function placeBelow(size: bigint, value: unknown): bigint {
  const number = plain(value);
  if (typeof number === "bigint" || (typeof number === "number" && Number.isSafeInteger(number))) {
    const place = BigInt(number);
    if (place >= 0n && place < size) return place;
  }
  throw refused(`whole numbers from 0 to ${size - 1n}`);
}

/** The share of a number between two ends, from 0 to 1. A number outside is moved to the nearer end. */
export function shareBetween(low: unknown, high: unknown, value: unknown): Ratio {
  const number = plain(value);
  if (typeof number !== "number" || Number.isNaN(number)) throw refused("a number");
  const [a, b] = ratio(low);
  const [c, d] = ratio(high);
  const [x, y] = Number.isFinite(number) ? ratio(number) : [number > 0 ? c : a, number > 0 ? d : b];
  const whole = (c * b - a * d) * y;
  const part = (x * b - a * y) * d;
  return part <= 0n ? [0n, 1n] : part >= whole ? [1n, 1n] : [part, whole];
}

/** The first 64 bits of BLAKE2b of a text. */
export function hashOf(value: unknown, person = ""): bigint {
  if (typeof value !== "string" || /\p{Surrogate}/u.test(value)) throw refused("text");
  return integerOf(blake2b(text(value), 8, text(person)));
}

/** 60 bits of a public hash of a text. */
export const fingerprint = (value: unknown): bigint => hashOf(value, "discreet local") >> 4n;
