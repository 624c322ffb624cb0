/** The cryptography that a report needs. WebCrypto has it; the entry `./noble` brings it for engines without. */

export type Bytes = Uint8Array<ArrayBuffer>;

export interface Suite {
  /** Random bytes of the operating system. */
  random(count: number): Bytes;
  sha256(data: Bytes): Promise<Bytes>;
  /** HMAC-SHA-256. */
  hmac(key: Bytes, data: Bytes): Promise<Bytes>;
  /** A fresh X25519 key pair: its public key, and what it shares with the owner of `other`. */
  exchange(other: Bytes): Promise<{ own: Bytes; shared: Bytes }>;
  /** AES-128-GCM: the ciphertext with its tag. */
  encrypt(key: Bytes, nonce: Bytes, data: Bytes): Promise<Bytes>;
}

const bytes = (found: ArrayBuffer): Bytes => new Uint8Array(found);

/** Browsers since 2025, Node since 20, Deno, Bun. */
export const webCrypto: Suite = {
  random: (count) => crypto.getRandomValues(new Uint8Array(count)),
  sha256: async (data) => bytes(await crypto.subtle.digest("SHA-256", data)),
  async hmac(key, data) {
    const kind = { name: "HMAC", hash: "SHA-256" };
    return bytes(await crypto.subtle.sign("HMAC", await crypto.subtle.importKey("raw", key, kind, false, ["sign"]), data));
  },
  async exchange(other) {
    const own = (await crypto.subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair;
    const theirs = await crypto.subtle.importKey("raw", other, "X25519", false, []);
    const shared = await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, own.privateKey, 256);
    return { own: bytes(await crypto.subtle.exportKey("raw", own.publicKey)), shared: bytes(shared) };
  },
  async encrypt(key, nonce, data) {
    const made = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    return bytes(await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce }, made, data));
  },
};
