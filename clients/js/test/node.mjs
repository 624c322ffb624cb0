// Runs the tests in Node: node test/node.mjs FOLDER [DIST], where FOLDER has vectors.json. Results go to FOLDER/node.json.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";
import { run } from "./reports.mjs";

const [folder, dist = "dist", only = ""] = process.argv.slice(2);
const vectors = JSON.parse(readFileSync(`${folder}/vectors.json`, "utf8"));
const at = (path) => import(pathToFileURL(resolve(dist, path)).href);
const opened = [];
const result = await run(
  {
    vectors,
    opened,
    draws: vectors.draws,
    parts: (name) => at(`parts/${name}.js`),
    entry: (name) => at(`${name}.js`),
    suites: async () => [(await at("parts/suite.js")).webCrypto, (await at("noble.js")).noble],
  },
  only,
);
writeFileSync(`${folder}/node.json`, JSON.stringify({ ...result, opened }));
