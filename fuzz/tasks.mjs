// Reads tasks as a device does: a line of JSON in, one out. `node tasks.mjs FOLDER`, where FOLDER is the built package.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const { poll, survey } = await import(pathToFileURL(resolve(process.argv[2], "all.js")).href);
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, task, value } = JSON.parse(line);
  const bytes = Buffer.from(task, "base64");
  const memory = new Map();
  const options = {
    shuffler: "http://127.0.0.1:1",
    token: "00".repeat(48),
    memory: { getItem: (key) => memory.get(key) ?? null, setItem: (key, one) => void memory.set(key, one) },
  };
  let said;
  try {
    if (kind === "survey") said = { report: (await survey(bytes, options).encode(value)) !== undefined };
    else said = { report: (await poll(bytes, options).seal(value)).report.length > 0 };
  } catch (error) {
    said = { error: error.name, code: error.code ?? "", message: String(error.message) };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
