/** What one client of a shuffled poll sends: its value as messages, with noise of its own. */

import { known } from "./errors.js";
import { type Draws, ratio, shuffled } from "./exact.js";
import { otherThan } from "./oracles.js";
import { placeAmong, placeBelow, shareBetween } from "./values.js";

/** The description of a protocol, as Python wrote it. */
export type Protocol = { kind: string; choices?: unknown[] } & Record<string, unknown>;

export type Client = (protocol: Protocol, value: unknown, draws: Draws) => bigint[];

/** Uniform messages below `choices`; a fraction of one is sent with that probability, and otherwise an empty one. */
export function fakes(count: unknown, choices: bigint, draws: Draws): bigint[] {
  const [part, whole] = ratio(count);
  const sent: bigint[] = [];
  for (let fake = 0n; fake < part / whole; fake++) sent.push(draws.below(choices));
  if (part % whole) {
    const last = draws.below(choices);
    sent.push(draws.coin([part % whole, whole]) ? last : choices);
  }
  return sent;
}

/** The clients of protocols, by kind. The entry `./all` adds to them. */
export const CLIENTS: Record<string, Client> = {
  "bit sum": (protocol, value, draws) => [placeBelow(2n, value) ^ BigInt(draws.coin(ratio(protocol.lie)))],
  "histogram by response": ({ choices, lie }, value, draws) => {
    const place = placeAmong(choices!, value);
    const [part, whole] = ratio(lie);
    const others = BigInt(choices!.length - 1);
    return [draws.coin([part * others, whole]) ? otherThan(place, others + 1n, draws) : place];
  },
  "histogram with fakes": (protocol, value, draws) => [
    placeAmong(protocol.choices!, value),
    ...fakes(protocol.fakes, BigInt(protocol.choices!.length), draws),
  ],
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
  return shuffled(known(CLIENTS, protocol.kind)(protocol, value, draws), draws);
}
