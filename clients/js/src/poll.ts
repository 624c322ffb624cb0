/** Shuffled reports: randomized here, sealed to the analyzer, sealed once more to the shuffler, and sent once. */

import { ReportError } from "./errors.js";
import { drawsFrom } from "./exact.js";
import { joined, sealer, text } from "./hpke.js";
import { messagesOf } from "./polls.js";
import { type Bytes, webCrypto } from "./suite.js";
import { hex, type Options, ownMemory, read, type TaskBytes, unhex } from "./task.js";

export const POLL = "discreet/shuffle/v1";
const TRIES = 5;
let turn: Promise<void> = Promise.resolve(); // one report after another: two clicks are one person
const ANSWERS: Record<number, [string, string]> = {
  400: ["not-accepted", "The token or task is not the shuffler's."],
  409: ["reported-already", "Already reported."],
  410: ["closed", "The poll is closed."],
};

export interface PollOptions extends Options {
  /** The address of the shuffler. */
  shuffler: string;
  /** The client's token in hexadecimal digits. Without one, the shuffler of an open poll is asked for it. */
  token?: string;
}

export interface Sealed {
  /** The randomized messages, before they are sealed: what the analyzer reads, without a name. */
  messages: bigint[];
  /** The bytes that leave the device. */
  report: Bytes;
}

export interface Poll {
  /** Randomize and seal an answer, and send nothing. Every call draws anew. */
  seal(value: unknown): Promise<Sealed>;
  /** Report an answer once. If the network fails, now or in an earlier call, the same bytes are sent again. */
  send(value: unknown): Promise<void>;
  /** "sent", "out" after the person opted out, or null. */
  state(): Promise<string | null>;
  /** The person does not take part: nothing is ever sent for this task. */
  optOut(): Promise<void>;
}

/** A poll from the bytes of its task. */
export function poll(task: TaskBytes, options: PollOptions): Poll {
  const suite = options.suite ?? webCrypto;
  const memory = options.memory ?? ownMemory();
  const shuffler = options.shuffler.replace(/\/+$/, "");
  const opened = read(task, POLL, suite, options.hash);
  opened.catch(() => {}); // said by the calls below
  const name = async (what: string): Promise<string> => `discreet/${hex((await opened).hash)}/${what}`;

  async function post(path: string, headers: Record<string, string>, body?: Bytes): Promise<Response> {
    const state = await name("state");
    for (let wait = 0; ; wait++) {
      if (memory.getItem(state) === "out") throw new ReportError("opted-out", "Opted out."); // also while it is tried
      const answer = await fetch(shuffler + path, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream", ...headers },
        body: body ?? null,
        cache: "no-store",
        credentials: "omit",
        keepalive: !body || body.length < 60_000,
        redirect: "error",
        referrerPolicy: "no-referrer",
      }).catch(() => null);
      if (answer && answer.status < 500) return answer;
      if (wait >= TRIES - 1)
        throw new ReportError("unreachable", "The shuffler cannot be reached.");
      await new Promise((done) => setTimeout(done, 100 * 2 ** wait));
    }
  }

  async function ownToken(): Promise<string> {
    const key = await name("token");
    let token = options.token ?? memory.getItem(key);
    if (!token) {
      const answer = await post("/v1/token", {});
      if (!answer.ok) throw new ReportError("token-needed", "A token is needed.");
      memory.setItem(key, (token = hex(new Uint8Array(await answer.arrayBuffer()))));
    }
    if (!/^[0-9a-f]{96,}$/i.test(token)) throw new ReportError("not-accepted", "This is no token.");
    return token.toLowerCase();
  }

  const drawn = async (value: unknown): Promise<bigint[]> =>
    messagesOf((await opened).facts.protocol, value, drawsFrom(suite.random));

  async function sealed(messages: bigint[], token: string): Promise<Sealed> {
    const { facts, hash } = await opened;
    const inner = await sealer(suite, unhex(facts.analyzer), joined(text(`${POLL}/inner`), hash));
    const outer = await sealer(
      suite,
      unhex(facts.shuffler),
      joined(text(`${POLL}/outer`), hash, unhex(token.slice(0, 32))),
    );
    const plain = messages.map((message) => unhex(message.toString(16).padStart(2 * facts.length, "0")));
    return { messages, report: await outer(joined(...(await Promise.all(plain.map(inner))))) };
  }

  async function sendNow(value: unknown): Promise<void> {
    const state = await name("state");
    if (memory.getItem(state) === "sent") throw new ReportError(...ANSWERS[409]!);
    const messages = await drawn(value); // a wrong answer is refused before a token is asked for
    const token = await ownToken();
    const key = await name(token.slice(0, 32)); // a token has one report
    let kept = memory.getItem(key);
    if (!kept) memory.setItem(key, (kept = hex((await sealed(messages, token)).report)));
    const { status } = await post("/v1/report", { Authorization: `Bearer ${token}` }, unhex(kept));
    if (status !== 200) throw new ReportError(...(ANSWERS[status] ?? ANSWERS[400]!));
    memory.setItem(state, "sent");
    memory.setItem(key, "");
  }

  return {
    seal: async (value) => sealed(await drawn(value), options.token ?? ""),
    send: (value) => (turn = turn.catch(() => {}).then(() => sendNow(value))),
    state: async () => memory.getItem(await name("state")),
    optOut: async () => memory.setItem(await name("state"), "out"),
  };
}
