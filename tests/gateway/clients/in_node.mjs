// node-postgres and postgres.js: `node in_node.mjs CLIENT`, with the task as JSON on the input. Prints JSON.
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf8"));
const tables =
  "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name";
const given = "SELECT COUNT(*) AS n FROM visits WHERE cost <= $1";
const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const numbers = (rows) =>
  rows.map((row) => row.map((cell) => (typeof cell === "string" && /^-?\d+$/.test(cell) ? Number(cell) : cell)));

async function nodePostgres() {
  const { default: pg } = await import("pg");
  const client = new pg.Client(task);
  client.on("error", () => {});
  await client.connect();
  const rows = async (text, values) => numbers((await client.query({ text, values, rowMode: "array" })).rows);
  const cancel = async (text) => {
    const running = rows(text);
    running.catch(() => {});
    await later(500);
    const other = new pg.Client(task);
    other.connection.on("connect", () => other.connection.cancel(client.processID, client.secretKey));
    other.connection.on("error", () => {});
    other.connection.connect(task.port, task.host);
    return running;
  };
  return { rows, cancel, given: () => rows(given, [50.0]), end: () => client.end() };
}

async function postgresJs() {
  const { default: postgres } = await import("postgres");
  const sql = postgres({ ...task, username: task.user, max: 1, onnotice: () => {} });
  const rows = async (text) => numbers(await sql.unsafe(text).values());
  const cancel = async (text) => {
    const running = sql.unsafe(text).execute();
    running.catch(() => {});
    await later(500);
    running.cancel();
    return running;
  };
  return { rows, cancel, given: () => sql.unsafe(given, [50.0]).values().then(numbers), end: () => sql.end() };
}

const client = await { "node-pg": nodePostgres, "postgres.js": postgresJs }[process.argv[2]]();
const state = async (running) => running.then(() => null, (error) => error.code);
const saw = { tables: (await client.rows(tables)).flat() };
saw.rows = await client.rows(task.ask);
saw.again = await client.rows(task.ask);
saw.scan = await state(client.rows(task.scan));
saw.budget = await state(client.rows(task.budget));
saw.cancel = await state(client.cancel(task.slow));
saw.after = await client.rows(task.ask);
saw.more = { parameters: await client.given() };
await client.end();
console.log(JSON.stringify(saw));
