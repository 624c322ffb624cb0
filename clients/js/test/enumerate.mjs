// Lists everything that a randomizer can draw, with exact probabilities.

const gcd = (a, b) => (b ? gcd(b, a % b) : a);

export function plus([a, b], [c, d]) {
  const [part, whole] = [a * d + c * b, b * d];
  const shared = gcd(part, whole);
  return [part / shared, whole / shared];
}

/** The law of `make(draws)`: a map from each outcome, as JSON, to its probability. */
export function lawOf(make) {
  const law = new Map();
  const path = []; // the decisions of this run: their options and which one is taken
  do {
    let depth = 0;
    const decide = (options) => {
      if (depth === path.length) path.push({ options, taken: 0 });
      const { taken, options: known } = path[depth++];
      return known[taken];
    };
    const outcome = make({
      coin: ([part, whole]) => {
        if (part < 0n || part > whole || whole <= 0n) throw new Error(`no probability: ${part}/${whole}`);
        if (part === 0n || part === whole) return part === whole;
        return decide([[true, [part, whole]], [false, [whole - part, whole]]])[0];
      },
      below: (bound) => {
        if (bound <= 0n) throw new Error(`no bound: ${bound}`);
        return decide(Array.from({ length: Number(bound) }, (_, value) => [BigInt(value), [1n, bound]]))[0];
      },
    });
    const key = JSON.stringify(outcome, (_, value) => (typeof value === "bigint" ? Number(value) : value));
    const weight = path.reduce(
      ([a, b], { options, taken }) => [a * options[taken][1][0], b * options[taken][1][1]],
      [1n, 1n],
    );
    law.set(key, plus(law.get(key) ?? [0n, 1n], weight));
    while (path.length && path.at(-1).taken === path.at(-1).options.length - 1) path.pop();
    if (path.length) path.at(-1).taken++;
  } while (path.length);
  return law;
}

/** Random bytes that are all strings of bits up to a length, one after another: `make` is run for each. */
export function overBits(bits, make) {
  const found = new Map();
  let open = 0n; // strings that were too short to decide
  for (let string = 0n; string < 1n << BigInt(bits); string++) {
    let left = bits / 8;
    const random = (count) => {
      if (count > left) throw new RangeError("the string has ended");
      left -= count;
      const part = (string >> BigInt(8 * left)) & ((1n << BigInt(8 * count)) - 1n);
      return Uint8Array.from({ length: count }, (_, place) => Number((part >> BigInt(8 * (count - 1 - place))) & 255n));
    };
    try {
      const outcome = String(make(random));
      found.set(outcome, (found.get(outcome) ?? 0n) + 1n);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      open++;
    }
  }
  return { found, open };
}
