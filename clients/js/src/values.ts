/** What a person answers, as the place in a public domain that randomizers work on. A wrong answer is refused here. */

import { ReportError } from "./errors.js";
import { type Ratio, ratio } from "./exact.js";

/** The refusal of an answer. It does not hold the answer. */
export function refused(takes: string): ReportError {
  return new ReportError("unknown-answer", `This answer is not taken. Taken: ${takes}.`);
}

/** True and false are 1 and 0, as in Python. */
const plain = (value: unknown): unknown => (typeof value === "boolean" ? Number(value) : value);

/** The place of an answer among the choices, to one of which it must be equal. */
export function placeAmong(choices: unknown[], value: unknown): bigint {
  if (choices.some((one) => Number.isInteger(one) && !Number.isSafeInteger(one)))
    throw new ReportError("not-supported", "A choice is an integer beyond 2^53.");
  const place = choices.findIndex((one) => plain(one) === plain(value));
  if (place < 0) throw refused("one of its choices");
  return BigInt(place);
}

/** A whole number from 0 to size − 1. */
export function placeBelow(size: bigint, value: unknown): bigint {
  const number = plain(value);
  const place = typeof number === "bigint" || Number.isSafeInteger(number) ? BigInt(number as bigint) : -1n;
  if (place < 0n || place >= size) throw refused(`whole numbers below ${size}`);
  return place;
}

/** The share of a number between two ends, from 0 to 1. A number outside is moved to the nearer end. */
export function shareBetween(low: unknown, high: unknown, value: unknown): Ratio {
  const number = plain(value);
  if (!Number.isFinite(number)) throw refused("a number");
  const [a, b] = ratio(low);
  const [c, d] = ratio(high);
  const [x, y] = ratio(number);
  const whole = (c * b - a * d) * y;
  const part = (x * b - a * y) * d;
  return part <= 0n ? [0n, 1n] : part >= whole ? [1n, 1n] : [part, whole];
}
