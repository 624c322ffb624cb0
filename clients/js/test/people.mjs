// People with vouchers, through a real issuer and shuffler: node test/people.mjs DIST FILE. Prints what happened.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, file] = process.argv.slice(2);
const at = (name) => import(pathToFileURL(resolve(dist, `${name}.js`)).href);
const { poll } = await at("index");
const { admit } = await at("admission");
const { task, hash, issuer, shuffler, people } = JSON.parse(readFileSync(file, "utf8"));

function memory() {
  const kept = new Map();
  return { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => void kept.set(name, value) };
}

const lengths = new Set();
const codes = [];
for (const [voucher, answer] of people) {
  const own = memory();
  const token = await admit(task, { hash, issuer, voucher, memory: own });
  lengths.add(token.length);
  await poll(task, { hash, shuffler, token, memory: own }).send(answer);
}
const attempts = [
  () => admit(task, { hash, issuer, voucher: people[0][0], memory: memory() }), // a second ticket
  () => admit(task, { hash, issuer, voucher: "0".repeat(32), memory: memory() }), // a voucher that nobody was given
  () => poll(task, { hash, shuffler, token: "0".repeat([...lengths][0]), memory: memory() }).send(people[0][1]),
];
for (const attempt of attempts) codes.push(await attempt().then(() => "done", (error) => error.code));
console.log(JSON.stringify({ lengths: [...lengths], codes }));
