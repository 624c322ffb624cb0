/** How one value is reported with deniability to a collector whom nobody has to trust. */

import { known } from "./errors.js";
import { type Draws, type Ratio, ratio } from "./exact.js";
import { placeAmong, placeBelow, shareBetween } from "./values.js";

/** The description of a survey, as Python wrote it. */
export type Described = Record<string, any>;

/** What is sent: a number, numbers, or a report for each column. */
export type Report = number | number[] | { [column: string]: Report };

const LIMB = 30n;

/** A uniform place below `size` other than this one. */
export function otherThan(place: bigint, size: bigint, draws: Draws): bigint {
  return (place + 1n + draws.below(size - 1n)) % size;
}

/** weight·odds/(weight·odds + rest): a part that is `odds` times likelier for its size. */
export function likelier(odds: unknown, weight: bigint, rest: bigint): Ratio {
  const [part, whole] = ratio(odds);
  return [weight * part, weight * part + rest * whole];
}

/** The place itself, or another one. */
function direct(place: bigint, size: bigint, odds: unknown, draws: Draws): bigint {
  return draws.coin(likelier(odds, 1n, size - 1n)) ? place : otherThan(place, size, draws);
}

/** One bit for each value, eight in a byte. */
export function packed(ones: Set<bigint>, size: number): number[] {
  const bytes = Array<number>(Math.ceil(size / 8)).fill(0);
  for (const one of ones) bytes[Number(one >> 3n)]! |= 128 >> Number(one & 7n);
  return bytes;
}

/** (Σ aᵢ·vᵢ + b) mod prime, as one of `cells` equal parts. The value is in limbs of 30 bits. */
export function hashed(value: bigint, numbers: bigint[], prime: bigint, cells: bigint): bigint {
  const limbs = numbers.length < 3 ? [value] : [value >> LIMB, value & ((1n << LIMB) - 1n)];
  const sum = limbs.reduce((total, limb, place) => total + numbers[place]! * limb, numbers[limbs.length]!);
  return ((sum % prime) * cells) / prime;
}

type Oracle = (oracle: Described, place: bigint, draws: Draws) => bigint | (bigint | number)[];

/** The oracles, by method. The entry `./all` adds to them. */
export const ORACLES: Record<string, Oracle> = {
  direct: ({ size, odds }, place, draws) => direct(place, BigInt(size), odds, draws),
  subset({ size, odds, width, listed }, place, draws) {
    const truthful = draws.coin(likelier(odds, BigInt(width), BigInt(size - width)));
    const found = new Set(truthful ? [place] : []);
    // Floyd's way to a uniform set of the other values
    const wanted = width - Number(truthful);
    for (let last = size - 1 - wanted; last < size - 1; last++) {
      const step = draws.below(BigInt(last + 1));
      const other = (place + 1n + step) % BigInt(size);
      found.add(found.has(other) ? (place + 1n + BigInt(last)) % BigInt(size) : other);
    }
    return listed ? [...found].sort((a, b) => Number(a - b)) : packed(found, size);
  },
  hashing({ size, odds, cells, prime }, place, draws) {
    const numbers = Array.from({ length: size > 2 ** 30 ? 3 : 2 }, () => draws.below(BigInt(prime)));
    const cell = hashed(place, numbers, BigInt(prime), BigInt(cells));
    return [...numbers, direct(cell, BigInt(cells), odds, draws)];
  },
  hadamard({ size, odds }, place, draws) {
    const row = place + 1n;
    const drawn = draws.below(1n << BigInt(size.toString(2).length));
    const odd = (row & drawn).toString(2).split("1").length % 2 === 0;
    return odd === draws.coin(likelier(odds, 1n, 1n)) ? drawn ^ (row & -row) : drawn;
  },
};

/** The report of a place by this oracle: a number or numbers. */
export function reported(oracle: Described, place: bigint, draws: Draws): number | number[] {
  // a place that no other answer has would be told as it is
  const report = known(ORACLES, oracle.method)(oracle, placeBelow(BigInt(oracle.size), place), draws);
  return typeof report === "bigint" ? Number(report) : report.map(Number);
}

/** One of `outputs` numbers; those in a window, which moves with the number, are likelier. */
function windowed({ outputs, window, odds, grid }: Described, place: bigint, draws: Draws): bigint {
  const moves = BigInt(outputs - window);
  const width = BigInt(window);
  const moved = place * moves;
  const start = moved / BigInt(grid) + BigInt(draws.coin([moved % BigInt(grid), BigInt(grid)]));
  if (draws.coin(likelier(odds, width, moves))) return start + draws.below(width);
  const outside = draws.below(moves);
  return outside < start ? outside : outside + width;
}

/** The nearest of `grid` + 1 equally spaced places between the two ends of a survey. */
export function nearest({ low, high }: Described, value: unknown, grid: bigint): bigint {
  const [part, whole] = shareBetween(low, high, value);
  return (2n * part * grid + whole) / (2n * whole);
}

/** A report for a number between two ends, by a window or by one of two of them. */
export function measured(survey: Described, value: unknown, draws: Draws): number {
  const { wide, coin, share } = survey.mechanism;
  const first = wide ?? survey.mechanism;
  known(first, "outputs"); // Laplace noise has none
  const place = nearest(survey, value, BigInt(first.grid));
  if (!wide) return Number(windowed(first, place, draws));
  return draws.coin(ratio(share))
    ? Number(windowed(wide, place, draws))
    : wide.outputs + Number(windowed(coin, place, draws));
}

/** The place of an answer to surveys of single values, by kind. The entry `./all` adds to them. */
export const PLACES: Record<string, (survey: Described, value: unknown) => bigint> = {
  choices: ({ choices }, value) => placeAmong(choices, value),
  numbers: ({ oracle }, value) => placeBelow(BigInt(oracle.size), value),
};

/** The surveys, by kind. The entry `./all` adds to them. */
export const SURVEYS: Record<string, (survey: Described, value: any, draws: Draws) => Report> = {
  mean: measured,
};

/** The report of one answer. */
export function reportOf(survey: Described, value: unknown, draws: Draws): Report {
  return survey.oracle && !Object.hasOwn(SURVEYS, survey.kind)
    ? reported(survey.oracle, known(PLACES, survey.kind)(survey, value), draws)
    : known(SURVEYS, survey.kind)(survey, value, draws);
}

/** The next report of a permanent answer, with fresh noise. */
export function renewed(oracle: Described, permanent: Report, draws: Draws): Report {
  return reported(oracle, BigInt(permanent as number), draws);
}
