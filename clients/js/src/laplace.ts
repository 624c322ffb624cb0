/** Laplace noise on the integers, drawn exactly. */

import type { Draws, Ratio } from "./exact.js";

/** True with probability exactly e^(−energy), for a rational energy ≥ 0 (Forsythe and von Neumann). */
function expCoin([part, whole]: Ratio, draws: Draws): boolean {
  for (; part > whole; part -= whole) if (!expCoin([1n, 1n], draws)) return false;
  let tries = 1n;
  while (draws.coin([part, whole * tries])) tries++;
  return tries % 2n === 1n;
}

/** An integer with P[k] ∝ e^(−|k|/scale), exactly, for a rational scale (Canonne, Kamath and Steinke 2020). */
export function discreteLaplace([part, whole]: Ratio, draws: Draws): bigint {
  for (;;) {
    const rest = draws.below(part);
    if (!expCoin([rest, part], draws)) continue;
    let rounds = 0n;
    while (expCoin([1n, 1n], draws)) rounds++;
    const size = (rest + part * rounds) / whole;
    const negative = draws.coin([1n, 2n]);
    if (size || !negative) return negative ? -size : size;
  }
}
