// Seals and reports a second, the same in Node and in a browser. `load(name)` imports a built entry.

const KEY = Uint8Array.from({ length: 32 }, (_, place) => (place ? 0 : 9));

async function rate(work, seconds = 3) {
  for (let warm = 0; warm < 50; warm++) await work();
  let done = 0;
  const start = performance.now();
  while (performance.now() - start < 1000 * seconds) {
    await Promise.all(Array.from({ length: 8 }, work));
    done += 8;
  }
  return (1000 * done) / (performance.now() - start);
}

/** Rates by name. The peer is hpke-js, with the same suite. */
export async function rates(load, task) {
  const { sealer } = await load("parts/hpke");
  const { webCrypto } = await load("parts/suite");
  const { drawsFrom } = await load("parts/exact");
  const { messagesOf } = await load("parts/polls");
  const { noble } = await load("noble");
  const { poll } = await load("index");
  const peer = await load("peer");
  const plain = new Uint8Array(32);
  const info = new Uint8Array(57);
  const protocol = JSON.parse(task).protocol;
  const draws = drawsFrom(webCrypto.random);
  const options = { shuffler: "http://127.0.0.1:1", token: "00".repeat(48) };
  const suite = new peer.CipherSuite({ kem: new peer.DhkemX25519HkdfSha256(), kdf: new peer.HkdfSha256(), aead: new peer.Aes128Gcm() });
  const theirs = await suite.kem.deserializePublicKey(KEY);
  const [ours, nobles] = [await sealer(webCrypto, KEY, info), await sealer(noble, KEY, info)];
  return {
    seals: await rate(() => ours(plain)),
    "seals by noble": await rate(async () => nobles(plain)),
    "seals by hpke-js": await rate(() => suite.seal({ recipientPublicKey: theirs, info }, plain)),
    reports: await rate(() => poll(task, options).seal("a")),
    randomized: await rate(async () => messagesOf(protocol, "a", draws)),
  };
}
