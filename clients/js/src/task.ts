/** A task: the canonical bytes that everybody has, and the hash that names them. They are never written again. */

import { ReportError } from "./errors.js";
import { text } from "./hpke.js";
import type { Bytes, Suite } from "./suite.js";

/** The bytes of a task, as the service sent them. */
export type TaskBytes = ArrayBuffer | Uint8Array | string;

/** Where a device remembers what it has sent: `localStorage`, or anything like it. */
export interface Memory {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

export interface Options {
  /** The task's hash in hexadecimal digits, which the page has from somebody it trusts. Another task is refused. */
  hash?: string;
  /** What the device remembers. By default `localStorage` where there is one, and otherwise this object only. */
  memory?: Memory;
  /** The cryptography. By default WebCrypto. */
  suite?: Suite;
}

export const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const unhex = (digits: string): Bytes => Uint8Array.from(digits.match(/../g) ?? [], (two) => parseInt(two, 16));

/** What a task says, and its hash. */
export async function read(
  task: TaskBytes,
  format: string,
  suite: Suite,
  pinned?: string,
): Promise<{ facts: any; hash: Bytes }> {
  const bytes = (typeof task === "string" ? text(task) : new Uint8Array(task as ArrayBuffer)) as Bytes;
  const hash = await suite.sha256(bytes);
  if (pinned !== undefined && pinned.toLowerCase() !== hex(hash))
    throw new ReportError("wrong-task", "The task has another hash.");
  let facts: any;
  try {
    facts = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    // said below
  }
  if (facts?.format !== format)
    throw new ReportError("task-unreadable", `No task of the format ${format}.`);
  return { facts, hash };
}

/** The memory of the browser, or one that lasts as long as this page. */
export function ownMemory(): Memory {
  try {
    if (globalThis.localStorage) return globalThis.localStorage;
  } catch {
    // a browser may forbid it
  }
  const kept = new Map<string, string>();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
}
