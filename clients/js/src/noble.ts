/** The cryptography for engines without WebCrypto's X25519, such as React Native: `poll(task, { suite: noble, … })`. */

import { gcm } from "@noble/ciphers/aes.js";
import { x25519 } from "@noble/curves/ed25519.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { Bytes, Suite } from "./suite.js";

export const noble: Suite = {
  random: (count) => crypto.getRandomValues(new Uint8Array(count)),
  sha256: async (data) => sha256(data) as Bytes,
  hmac: async (key, data) => hmac(sha256, key, data) as Bytes,
  async exchange(other) {
    const secret = noble.random(32);
    return { own: x25519.getPublicKey(secret) as Bytes, shared: x25519.getSharedSecret(secret, other) as Bytes };
  },
  encrypt: async (key, nonce, data) => gcm(key, nonce).encrypt(data) as Bytes,
};
