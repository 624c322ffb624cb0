/** Sealing by HPKE (RFC 9180), base mode, single shot: X25519, HKDF-SHA-256, AES-128-GCM. */

import type { Bytes, Suite } from "./suite.js";

const NOTHING: Bytes = new Uint8Array(0);
const ZEROS: Bytes = new Uint8Array(32);
const KEM: Bytes = text("KEM\0\x20");
const HPKE: Bytes = text("HPKE\0\x20\0\x01\0\x01");

/** Text as UTF-8. */
export function text(said: string): Bytes {
  return new TextEncoder().encode(said) as Bytes;
}

/** All parts, one after another. */
export function joined(...parts: Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let start = 0;
  for (const part of parts) {
    whole.set(part, start);
    start += part.length;
  }
  return whole;
}

/** Seals for one reader and one `info`: what is the same for all of them is made once. */
export async function sealer(suite: Suite, reader: Bytes, info: Bytes): Promise<(plain: Bytes) => Promise<Bytes>> {
  const version = text("HPKE-v1");
  const extract = (id: Bytes, salt: Bytes, label: string, given: Bytes): Promise<Bytes> =>
    suite.hmac(salt, joined(version, id, text(label), given));
  const expand = async (id: Bytes, secret: Bytes, label: string, given: Bytes, length: number): Promise<Bytes> =>
    (
      await suite.hmac(secret, joined(Uint8Array.of(0, length), version, id, text(label), given, Uint8Array.of(1)))
    ).slice(0, length);
  const context = joined(
    Uint8Array.of(0),
    await extract(HPKE, ZEROS, "psk_id_hash", NOTHING),
    await extract(HPKE, ZEROS, "info_hash", info),
  );
  return async (plain) => {
    const { own, shared } = await suite.exchange(reader);
    const mixed = await extract(KEM, ZEROS, "eae_prk", shared);
    const known = await expand(KEM, mixed, "shared_secret", joined(own, reader), 32);
    const secret = await extract(HPKE, known, "secret", NOTHING);
    const [key, nonce] = await Promise.all([
      expand(HPKE, secret, "key", context, 16),
      expand(HPKE, secret, "base_nonce", context, 12),
    ]);
    return joined(own, await suite.encrypt(key, nonce, plain));
  };
}
