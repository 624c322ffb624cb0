/** What one client of a shuffled poll sends: its value as messages, with noise of its own. */

import { ReportError } from "./errors.js";
import { type Draws, ratio, shuffled } from "./exact.js";
import { integerOf, shake256 } from "./hashes.js";
import { text } from "./hpke.js";
import { otherThan } from "./oracles.js";
import { hashOf, placeAmong, placeBelow, shareBetween } from "./values.js";

/** The description of a protocol, as Python wrote it. */
export type Protocol = { kind: string; choices?: unknown[] } & Record<string, unknown>;

type Client = (protocol: Protocol, value: unknown, draws: Draws) => bigint[];

const PRIME = (1n << 61n) - 1n;

/** Uniform messages below `choices`; a fraction of one is sent with that probability, and otherwise an empty one. */
function fakes(count: unknown, choices: bigint, draws: Draws): bigint[] {
  const [part, whole] = ratio(count);
  const sent: bigint[] = [];
  for (let fake = 0n; fake < part / whole; fake++) sent.push(draws.below(choices));
  if (part % whole) {
    const last = draws.below(choices);
    sent.push(draws.coin([part % whole, whole]) ? last : choices);
  }
  return sent;
}

/** The numbers a and b of one public function x → ((a·x + b) mod 2^61−1) mod buckets. */
function publicFunction(seed: unknown, rows: number, row: number): [bigint, bigint] {
  const drawn = shake256(text(`discreet/hashed/${seed}`), 16 * rows);
  const word = (place: number): bigint => integerOf(drawn.subarray(8 * place, 8 * place + 8)) % PRIME;
  return [word(row) || 1n, word(rows + row)];
}

const CLIENTS: Record<string, Client> = {
  "bit sum": (protocol, value, draws) => [placeBelow(2n, value) ^ BigInt(draws.coin(ratio(protocol.lie)))],
  "bit sum in two messages": (protocol, value, draws) => [
    placeBelow(2n, value),
    BigInt(draws.coin(ratio(protocol.chance))),
  ],
  "histogram by response": ({ choices, lie }, value, draws) => {
    const place = placeAmong(choices!, value);
    const [part, whole] = ratio(lie);
    const others = BigInt(choices!.length - 1);
    return [draws.coin([part * others, whole]) ? otherThan(place, others + 1n, draws) : place];
  },
  "histogram by parallel sums": ({ choices, chance, inverted }, value, draws) => {
    const place = placeAmong(choices!, value);
    const noise = ratio(chance);
    return choices!.flatMap((_, index) => {
      const choice = BigInt(index);
      const own = BigInt((choice === place) !== inverted);
      return [2n * choice + own, 2n * choice + BigInt(draws.coin(noise))];
    });
  },
  "histogram with fakes": (protocol, value, draws) => [
    placeAmong(protocol.choices!, value),
    ...fakes(protocol.fakes, BigInt(protocol.choices!.length), draws),
  ],
  "hashed histogram": (protocol, value, draws) => {
    const key = hashOf(value) % PRIME;
    const rows = protocol.rows as number;
    const buckets = BigInt(protocol.buckets as number);
    const row = draws.below(BigInt(rows));
    const [a, b] = publicFunction(protocol.seed, rows, Number(row));
    return [row * buckets + (((a * key + b) % PRIME) % buckets), ...fakes(protocol.fakes, BigInt(rows) * buckets, draws)];
  },
  "sum by digits": ({ low, high, lies }, value, draws) => {
    const [part, whole] = shareBetween(low, high, value);
    const listed = lies as unknown[];
    const steps = part * ((1n << BigInt(listed.length)) - 1n);
    const number = steps / whole + BigInt(draws.coin([steps % whole, whole]));
    return listed.map((lie, place) => {
      const digit = (number >> BigInt(listed.length - 1 - place)) & 1n;
      return 2n * BigInt(place) + (digit ^ BigInt(draws.coin(ratio(lie))));
    });
  },
};

/** The randomized messages of one answer, in random order: always the same number of them. */
export function messagesOf(protocol: Protocol, value: unknown, draws: Draws): bigint[] {
  const client = CLIENTS[protocol.kind];
  if (!client) throw new ReportError("not-supported", `This client does not know the protocol "${protocol.kind}".`);
  return shuffled(client(protocol, value, draws), draws);
}
