/** All of `@discreet/reports`, with what fewer pages need: open texts, sketches, prefixes, whole rows, Laplace noise,
 * and further methods.
 */

import { ReportError } from "./errors.js";
import { type Draws, ratio } from "./exact.js";
import { blake2b, integerOf, shake256 } from "./hashes.js";
import { text } from "./hpke.js";
import { discreteLaplace } from "./laplace.js";
import {
  type Described,
  hashed,
  likelier,
  measured,
  nearest,
  ORACLES,
  packed,
  PLACES,
  reported,
  reportOf,
  SURVEYS,
} from "./oracles.js";
import { CLIENTS, fakes } from "./polls.js";
import { placeAmong, placeBelow, refused } from "./values.js";

export * from "./index.js";

const MERSENNE = (1n << 31n) - 1n;
const PRIME = (1n << 61n) - 1n;

/** The first 64 bits of BLAKE2b of a text. */
function hashOf(value: unknown, person = ""): bigint {
  if (typeof value !== "string" || /\p{Surrogate}/u.test(value)) throw refused("text");
  return integerOf(blake2b(text(value), 8, text(person)));
}

/** 60 bits of a public hash of a text. */
const fingerprint = (value: unknown): bigint => hashOf(value, "discreet local") >> 4n;

/** A seed as text. One that JSON.parse has rounded would choose other functions than everybody else's. */
function exactSeed(seed: unknown): string {
  if (typeof seed !== "string" && !Number.isSafeInteger(seed)) throw new ReportError("not-supported", "The seed is a number beyond 2^53.");
  return String(seed);
}

/** The numbers a and b of one public function x → ((a·x + b) mod 2^61−1) mod buckets. */
function publicFunction(seed: unknown, rows: number, row: number): [bigint, bigint] {
  const drawn = shake256(text(`discreet/hashed/${exactSeed(seed)}`), 16 * rows);
  const word = (place: number): bigint => integerOf(drawn.subarray(8 * place, 8 * place + 8)) % PRIME;
  return [word(row) || 1n, word(rows + row)];
}

/** A text as digits: 0 is the end, and the first letter outside the alphabet ends it. */
function spelled(alphabet: string, length: number, value: unknown): bigint {
  if (typeof value !== "string") throw refused("text");
  const letters = [...alphabet];
  let number = 0n;
  let ended = false;
  const given = [...value];
  for (let place = 0; place < length; place++) {
    const digit: number = ended || place >= given.length ? 0 : letters.indexOf(given[place]!) + 1;
    ended ||= !digit;
    number = number * BigInt(letters.length + 1) + BigInt(digit);
  }
  return number;
}

const flat = (report: number | number[]): number[] => (Array.isArray(report) ? report : [report]);

/** A number with Laplace noise. */
function noisy(survey: Described, value: unknown, draws: Draws): number {
  const { low, high, mechanism } = survey;
  if (mechanism.scale === undefined) return measured(survey, value, draws);
  const [first, last] = [low, high].map((end) => {
    const [part, whole] = ratio(end);
    return Number(part) / Number(whole);
  }) as [number, number];
  const moved = nearest(survey, value, BigInt(mechanism.grid)) + discreteLaplace(ratio(mechanism.scale), draws);
  return first + Number(moved) * ((last - first) / mechanism.grid);
}

const spanned = (prime: bigint, dimension: bigint): bigint => (prime ** dimension - 1n) / (prime - 1n);

/** A number's digits, the highest first. */
function digits(number: bigint, base: bigint, count: number): bigint[] {
  return Array.from({ length: count }, (_, place) => (number / base ** BigInt(count - 1 - place)) % base);
}

Object.assign(ORACLES, {
  unary({ size, odds }, place, draws) {
    const [part, whole] = ratio(odds);
    const ones = new Set<bigint>();
    for (let value = 0n; value < size; value++)
      if (draws.coin(value === place ? [1n, 2n] : [whole, part + whole])) ones.add(value);
    return packed(ones, size);
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
} satisfies typeof ORACLES);

Object.assign(PLACES, { text: (_: Described, value: unknown) => fingerprint(value) });

Object.assign(CLIENTS, {
  "bit sum in two messages": (protocol, value, draws) => [
    placeBelow(2n, value),
    BigInt(draws.coin(ratio(protocol.chance))),
  ],
  "histogram by parallel sums": ({ choices, chance, inverted }, value, draws) => {
    const place = placeAmong(choices!, value);
    const noise = ratio(chance);
    return choices!.flatMap((_, index) => {
      const choice = BigInt(index);
      const own = BigInt((choice === place) !== inverted);
      return [2n * choice + own, 2n * choice + BigInt(draws.coin(noise))];
    });
  },
  "hashed histogram": (protocol, value, draws) => {
    const key = hashOf(value) % PRIME;
    const rows = protocol.rows as number;
    const buckets = BigInt(protocol.buckets as number);
    const row = draws.below(BigInt(rows));
    const [a, b] = publicFunction(protocol.seed, rows, Number(row));
    return [row * buckets + (((a * key + b) % PRIME) % buckets), ...fakes(protocol.fakes, BigInt(rows) * buckets, draws)];
  },
} satisfies typeof CLIENTS);

Object.assign(SURVEYS, {
  mean: noisy,
  sketch({ oracle, hashes, seed }, value, draws) {
    const key = fingerprint(value);
    const row = Number(draws.below(BigInt(hashes)));
    const numbers = [0, 1, 2].map(
      (part) => integerOf(blake2b(text(`${exactSeed(seed)}/${part * hashes + row}`), 16, text("discreet sketch"))) % MERSENNE,
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
} satisfies typeof SURVEYS);
