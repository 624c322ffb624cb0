// node bench/sizes.mjs: bundles peers as ours is bundled, and prints bytes compressed with gzip, as JSON.
import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const HPKE = 'export { CipherSuite, DhkemX25519HkdfSha256, HkdfSha256, Aes128Gcm } from "@hpke/core";';
const PEERS = { "hpke-js": HPKE, "Divvi Up": 'export { default } from "@divviup/dap";' };
const sizes = {};
for (const [name, contents] of Object.entries(PEERS)) {
  const made = await build({ stdin: { contents, resolveDir: "." }, bundle: true, format: "esm", platform: "browser", target: "es2022", write: false, logLevel: "error" });
  const { code } = await minify(made.outputFiles[0].text, { module: true, ecma: 2022 });
  sizes[name] = gzipSync(code, { level: 9 }).length;
  if (name === "hpke-js") writeFileSync("dist/peer.js", code);
}
console.log(JSON.stringify(sizes));
