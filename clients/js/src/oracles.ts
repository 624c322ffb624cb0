/** How one value is reported with deniability to a collector whom nobody has to trust. */

import { ReportError } from "./errors.js";
import { discreteLaplace, type Draws, type Ratio, ratio } from "./exact.js";
import { blake2b, integerOf } from "./hashes.js";
import { text } from "./hpke.js";
import { fingerprint, placeAmong, placeBelow, refused, shareBetween } from "./values.js";

/** The description of a survey, as Python wrote it. */
export type Described = Record<string, any>;

/** What is sent: a number, numbers, or a report for each column. */
export type Report = number | number[] | { [column: string]: Report };

const LIMB = 30n;
const MERSENNE = (1n << 31n) - 1n;

/** A uniform place below `size` other than this one. */
export function otherThan(place: bigint, size: bigint, draws: Draws): bigint {
  return (place + 1n + draws.below(size - 1n)) % size;
}

/** weight·odds/(weight·odds + rest): a part that is `odds` times likelier for its size. */
function likelier(odds: unknown, weight: bigint, rest: bigint): Ratio {
  const [part, whole] = ratio(odds);
  return [weight * part, weight * part + rest * whole];
}

/** The place itself, or another one. */
function direct(place: bigint, size: bigint, odds: unknown, draws: Draws): bigint {
  return draws.coin(likelier(odds, 1n, size - 1n)) ? place : otherThan(place, size, draws);
}

/** One bit for each value, eight in a byte. */
function packed(ones: Set<bigint>, size: number): number[] {
  const bytes = Array<number>(Math.ceil(size / 8)).fill(0);
  for (const one of ones) bytes[Number(one >> 3n)]! |= 128 >> Number(one & 7n);
  return bytes;
}

/** (Σ aᵢ·vᵢ + b) mod prime, as one of `cells` equal parts. The value is in limbs of 30 bits. */
function hashed(value: bigint, numbers: bigint[], prime: bigint, cells: bigint): bigint {
  const limbs = numbers.length < 3 ? [value] : [value >> LIMB, value & ((1n << LIMB) - 1n)];
  const sum = limbs.reduce((total, limb, place) => total + numbers[place]! * limb, numbers[limbs.length]!);
  return ((sum % prime) * cells) / prime;
}

const spanned = (prime: bigint, dimension: bigint): bigint => (prime ** dimension - 1n) / (prime - 1n);

/** A number's digits, the highest first. */
function digits(number: bigint, base: bigint, count: number): bigint[] {
  return Array.from({ length: count }, (_, place) => (number / base ** BigInt(count - 1 - place)) % base);
}

const ORACLES: Record<string, (oracle: Described, place: bigint, draws: Draws) => bigint | (bigint | number)[]> = {
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
  unary({ size, odds }, place, draws) {
    const [part, whole] = ratio(odds);
    const ones = new Set<bigint>();
    for (let value = 0n; value < size; value++)
      if (draws.coin(value === place ? [1n, 2n] : [whole, part + whole])) ones.add(value);
    return packed(ones, size);
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
  projective({ odds, prime, dimension }, place, draws) {
    const [p, n] = [BigInt(prime), BigInt(dimension)];
    const on = spanned(p, n - 1n);
    const free = p ** (n - 1n);
    const truthful = draws.coin(likelier(odds, on, spanned(p, n) - on));
    let lead = 0n;
    while (spanned(p, lead + 1n) <= place) lead++;
    const normal = digits(place - spanned(p, lead) + p ** lead, p, dimension);
    // one coordinate, where the normal is 1, follows from the others: x·u = 0 on the hyperplane, x·u = 1 off it
    const pivot = normal.findIndex((one) => one > 0n);
    const point = digits(truthful ? draws.below(free - 1n) + 1n : draws.below(free), p, dimension - 1);
    point.splice(pivot, 0, 0n);
    const product = point.reduce((sum, one, index) => sum + one * normal[index]!, 0n);
    point[pivot] = (((truthful ? 0n : 1n) - product) % p + p) % p;
    const first = point.findIndex((one) => one > 0n);
    let scale = 1n;
    while ((point[first]! * scale) % p !== 1n) scale++;
    const power = n - 1n - BigInt(first);
    return point.reduce((sum, one) => sum * p + ((one * scale) % p), 0n) - p ** power + spanned(p, power);
  },
};

/** The report of a place by this oracle: a number or numbers. */
function reported(oracle: Described, place: bigint, draws: Draws): number | number[] {
  const made = ORACLES[oracle.method];
  if (!made) throw new ReportError("not-supported", `This client does not know the method "${oracle.method}".`);
  const report = made(oracle, place, draws);
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

/** A report for a number between two ends. */
function measured({ low, high, mechanism }: Described, value: unknown, draws: Draws): number {
  const grid = BigInt((mechanism.wide ?? mechanism).grid);
  const [part, whole] = shareBetween(low, high, value);
  const place = (2n * part * grid + whole) / (2n * whole);
  if (mechanism.scale !== undefined) {
    const noise = discreteLaplace(ratio(mechanism.scale), draws);
    return Number(low) + Number(place + noise) * ((Number(high) - Number(low)) / Number(grid));
  }
  if (!mechanism.wide) return Number(windowed(mechanism, place, draws));
  const { wide, coin, share } = mechanism;
  return draws.coin(ratio(share))
    ? Number(windowed(wide, place, draws))
    : wide.outputs + Number(windowed(coin, place, draws));
}

/** A text as digits: 0 is the end, and the first letter outside the alphabet ends it. */
function spelled(alphabet: string, length: number, value: unknown): bigint {
  if (typeof value !== "string") throw refused("text");
  const letters = [...alphabet];
  let number = 0n;
  let ended = false;
  const given = [...value];
  for (let place = 0; place < length; place++) {
    const digit = ended || place >= given.length ? 0 : letters.indexOf(given[place]!) + 1;
    ended ||= !digit;
    number = number * BigInt(letters.length + 1) + BigInt(digit);
  }
  return number;
}

const flat = (report: number | number[]): number[] => (Array.isArray(report) ? report : [report]);

const SURVEYS: Record<string, (survey: Described, value: any, draws: Draws) => Report> = {
  choices: ({ choices, oracle }, value, draws) => reported(oracle, placeAmong(choices, value), draws),
  numbers: ({ oracle }, value, draws) => reported(oracle, placeBelow(BigInt(oracle.size), value), draws),
  text: ({ oracle }, value, draws) => reported(oracle, fingerprint(value), draws),
  mean: measured,
  sketch({ oracle, hashes, seed }, value, draws) {
    const key = fingerprint(value);
    const row = Number(draws.below(BigInt(hashes)));
    const numbers = [0, 1, 2].map(
      (part) => integerOf(blake2b(text(`${seed}/${part * hashes + row}`), 16, text("discreet sketch"))) % MERSENNE,
    );
    return [row, ...flat(reported(oracle, hashed(key, numbers, MERSENNE, BigInt(oracle.size)), draws))];
  },
  prefixes({ oracle, base, length, lengths, alphabet }, value, draws) {
    const size = BigInt(base) ** BigInt(length);
    const place = alphabet === undefined ? placeBelow(size, value) : spelled(alphabet, length, value);
    const group = Number(draws.below(BigInt(lengths.length)));
    return [group, ...flat(reported(oracle, place / BigInt(base) ** BigInt(length - lengths[group]), draws))];
  },
  rows: ({ columns }, row, draws) =>
    Object.fromEntries(
      columns.map(([name, column]: [string, Described]) => [name, reportOf(column, row?.[name], draws)]),
    ),
};

/** The report of one answer. */
export function reportOf(survey: Described, value: unknown, draws: Draws): Report {
  const made = SURVEYS[survey.kind];
  if (!made) throw new ReportError("not-supported", `This client does not know surveys of the kind "${survey.kind}".`);
  return made(survey, value, draws);
}

/** The next report of a permanent answer, with fresh noise. */
export function renewed(oracle: Described, permanent: Report, draws: Draws): Report {
  return reported(oracle, BigInt(permanent as number), draws);
}
