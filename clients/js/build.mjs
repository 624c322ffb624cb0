// Builds dist/: modules for npm, one file for a script tag, and types.
import { execFileSync } from "node:child_process";
import { build } from "esbuild";

const shared = { bundle: true, minify: true, target: "es2022", logLevel: "warning" };
await build({ ...shared, entryPoints: ["src/index.ts", "src/noble.ts"], format: "esm", outdir: "dist" });
await build({ ...shared, entryPoints: ["src/index.ts"], format: "iife", globalName: "discreet", outfile: "dist/discreet-reports.js" });
// every module on its own, unminified, for tests
await build({ entryPoints: ["src/*.ts"], format: "esm", target: "es2022", outdir: "dist/parts", logLevel: "warning" });
execFileSync("npx", ["tsc", "--emitDeclarationOnly"], { stdio: "inherit" });
