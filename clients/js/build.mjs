// Builds dist/: an entry for each purpose, one file for a script tag, every module on its own for tests, and types.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { build } from "esbuild";
import { minify } from "terser";

async function bundle(entry, format, name) {
  const made = await build({ entryPoints: [`src/${entry}.ts`], bundle: true, format, target: "es2022", write: false });
  const options = { module: true, ecma: 2022, compress: { passes: 4, pure_getters: true }, mangle: true };
  const { code } = await minify(made.outputFiles[0].text, options);
  writeFileSync(`dist/${name}.js`, code);
}

await build({ entryPoints: ["src/*.ts"], format: "esm", target: "es2022", outdir: "dist/parts", logLevel: "warning" });
for (const entry of ["index", "all", "admission", "noble"]) await bundle(entry, "esm", entry);
await bundle("script", "iife", "discreet-reports");
execFileSync("npx", ["tsc", "--emitDeclarationOnly"], { stdio: "inherit" });
