/** Public hash functions of text, the same as in Python: BLAKE2b (RFC 7693) and SHAKE256 (FIPS 202). */

const MASK = (1n << 64n) - 1n;

const turned = (word: bigint, left: number): bigint => ((word << BigInt(left)) | (word >> BigInt(64 - left))) & MASK;

const numberOf = (bytes: Uint8Array): bigint => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

const bytesOf = (word: bigint): number[] => Array.from({ length: 8 }, (_, place) => Number((word >> BigInt(8 * place)) & 255n));

/** A big-endian integer. */
export const integerOf = (bytes: Uint8Array): bigint => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

/** The first 64 bits after the point of a prime's square root. */
function rootBits(prime: number): bigint {
  const square = BigInt(prime) << 128n;
  for (let root = 1n << 70n; ; ) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root & MASK;
    root = next;
  }
}

const ORDER =
  "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d" +
  "2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0";

/** BLAKE2b of `length` bytes without a key, for a purpose that `person` names. */
export function blake2b(data: Uint8Array, length: number, person: Uint8Array): Uint8Array {
  const start = [2, 3, 5, 7, 11, 13, 17, 19].map(rootBits);
  const named = new Uint8Array(16);
  named.set(person);
  const state = start.slice();
  state[0]! ^= 0x01010000n ^ BigInt(length);
  state[6]! ^= numberOf(named.subarray(0, 8));
  state[7]! ^= numberOf(named.subarray(8));
  for (let done = 0; ; ) {
    const block = new Uint8Array(128);
    block.set(data.subarray(done, done + 128));
    done += 128;
    const last = done >= data.length;
    const v = [...state, ...start];
    v[12]! ^= BigInt(last ? data.length : done);
    if (last) v[14]! ^= MASK;
    for (let step = 0; step < 96; step++) {
      const row = step & 7;
      const turn = row >> 2;
      const [a, b, c, d] = [0, 1, 2, 3].map((line) => 4 * line + (((row & 3) + turn * line) & 3)) as [number, number, number, number];
      for (const [half, first, second] of [[0, 32, 40], [1, 48, 1]] as const) {
        const place = parseInt(ORDER[(((step >> 3) % 10) << 4) + 2 * row + half]!, 16);
        v[a] = (v[a]! + v[b]! + numberOf(block.subarray(8 * place, 8 * place + 8))) & MASK;
        v[d] = turned(v[d]! ^ v[a]!, first);
        v[c] = (v[c]! + v[d]!) & MASK;
        v[b] = turned(v[b]! ^ v[c]!, second);
      }
    }
    state.forEach((word, place) => (state[place] = word ^ v[place]! ^ v[place + 8]!));
    if (last) return Uint8Array.from(state.flatMap(bytesOf)).subarray(0, length);
  }
}

/** Keccak's permutation of 25 words. */
function permute(words: bigint[]): void {
  let bits = 1;
  for (let round = 0; round < 24; round++) {
    const sums = [0, 1, 2, 3, 4].map((x) => words[x]! ^ words[x + 5]! ^ words[x + 10]! ^ words[x + 15]! ^ words[x + 20]!);
    words.forEach((_, place) => (words[place]! ^= sums[(place + 4) % 5]! ^ turned(sums[(place + 1) % 5]!, 1)));
    let [x, y, moved] = [1, 0, words[1]!];
    for (let step = 1; step < 25; step++) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      [moved, words[x + 5 * y]] = [words[x + 5 * y]!, turned(moved, ((step * (step + 1)) / 2) % 64)];
    }
    for (let row = 0; row < 25; row += 5) {
      const line = words.slice(row, row + 5);
      line.forEach((word, place) => (words[row + place] = word ^ (line[(place + 2) % 5]! & ~line[(place + 1) % 5]! & MASK)));
    }
    for (let power = 1; power < 128; power *= 2) {
      if (bits & 1) words[0]! ^= 1n << BigInt(power - 1);
      bits = bits & 128 ? ((bits << 1) ^ 0x171) & 255 : bits << 1;
    }
  }
}

/** `length` bytes of SHAKE256. */
export function shake256(data: Uint8Array, length: number): Uint8Array {
  const rate = 136;
  const padded = new Uint8Array(rate * (Math.floor(data.length / rate) + 1));
  padded.set(data);
  padded[data.length]! ^= 0x1f;
  padded[padded.length - 1]! ^= 0x80;
  const words = Array<bigint>(25).fill(0n);
  for (let start = 0; start < padded.length; start += rate) {
    for (let place = 0; place < 17; place++)
      words[place]! ^= numberOf(padded.subarray(start + 8 * place, start + 8 * place + 8));
    permute(words);
  }
  const made: number[] = [];
  while (made.length < length) {
    made.push(...words.slice(0, 17).flatMap(bytesOf));
    permute(words);
  }
  return Uint8Array.from(made.slice(0, length));
}
