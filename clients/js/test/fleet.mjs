// Many clients of one poll: node test/fleet.mjs DIST FILE, where FILE is JSON: {task, shuffler, hash, clients: [[token, value]]}.
// Prints how the reports look, so that a test can compare them.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [dist, file] = process.argv.slice(2);
const { poll } = await import(pathToFileURL(resolve(dist, "index.js")).href);
const { task, shuffler, hash, clients } = JSON.parse(readFileSync(file, "utf8"));
const seen = { lengths: new Set(), headers: new Set(), sent: 0, codes: [] };
const real = globalThis.fetch;
globalThis.fetch = (address, request) => {
  seen.lengths.add(request.body.length);
  seen.headers.add(JSON.stringify({ ...request.headers, Authorization: "" }));
  return real(address, request);
};

async function take(waiting) {
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [token, value] = next;
    const kept = new Map();
    const memory = { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => void kept.set(key, text) };
    await poll(task, { shuffler, hash, token, memory }).send(value);
    seen.sent++;
    // a second report of the same client, by a device that has forgotten the first
    if (seen.sent % 50 === 0)
      await poll(task, { shuffler, hash, token, memory: { getItem: () => null, setItem() {} } })
        .send(value)
        .catch((error) => seen.codes.push(error.code));
  }
}

const waiting = [...clients];
await Promise.all(Array.from({ length: 8 }, () => take(waiting)));
console.log(JSON.stringify({ ...seen, lengths: [...seen.lengths], headers: [...seen.headers] }));
