// node bench/node.mjs TASK-FILE: prints the rates as JSON.
import { readFileSync } from "node:fs";
import { rates } from "./seals.mjs";

const task = readFileSync(process.argv[2], "utf8");
console.log(JSON.stringify(await rates((name) => import(`../dist/${name}.js`), task)));
