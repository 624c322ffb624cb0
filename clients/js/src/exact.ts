/** Exact numbers and exact draws: no float decides a probability, and every random bit comes from the CSPRNG. */

import { ReportError } from "./errors.js";

/** A rational number: numerator and denominator, the latter above 0. */
export type Ratio = readonly [bigint, bigint];

/** A number of a task as a person wrote it: 0.1 is one tenth. Fractions come as `{"fraction": ["1", "3"]}`. */
export function ratio(value: unknown): Ratio {
  if (typeof value === "number" && Number.isFinite(value)) {
    const [digits, exponent = "0"] = String(value).split("e");
    const [whole, part = ""] = digits!.split(".");
    const shift = BigInt(exponent) - BigInt(part.length);
    const number = BigInt(whole! + part);
    return shift < 0n ? [number, 10n ** -shift] : [number * 10n ** shift, 1n];
  }
  const parts = (value as { fraction?: [string, string] } | null)?.fraction;
  if (parts) return [BigInt(parts[0]), BigInt(parts[1])];
  throw new ReportError("task-unreadable", "A number is missing.");
}

/** What every randomizer draws from. Tests replace it to list all that can be drawn. */
export interface Draws {
  /** A uniform integer from 0 to `bound` − 1. */
  below(bound: bigint): bigint;
  /** True with exactly this probability. */
  coin(chance: Ratio): boolean;
}

/** Draws from random bytes. A number is drawn again until it is below the bound, so none is likelier than another. */
export function drawsFrom(random: (count: number) => Uint8Array): Draws {
  const below = (bound: bigint): bigint => {
    const bits = (bound - 1n).toString(2).length;
    const count = (bits + 7) >> 3;
    for (;;) {
      let drawn = 0n;
      for (const byte of random(count)) drawn = (drawn << 8n) | BigInt(byte);
      drawn >>= BigInt(8 * count - bits);
      if (drawn < bound) return drawn;
    }
  };
  return { below, coin: ([part, whole]) => below(whole) < part };
}

/** The items in a uniformly random order. */
export function shuffled<Item>(items: Item[], draws: Draws): Item[] {
  for (let last = items.length - 1; last > 0; last--) {
    const other = Number(draws.below(BigInt(last + 1)));
    [items[last], items[other]] = [items[other]!, items[last]!];
  }
  return items;
}
