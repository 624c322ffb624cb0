/** Local reports: randomized on this device, so nobody who collects them has to be trusted. */

import { known } from "./errors.js";
import { drawsFrom } from "./exact.js";
import { PLACES, type Report, renewed, reportOf } from "./oracles.js";
import { webCrypto } from "./suite.js";
import { hex, type Options, ownMemory, read, type TaskBytes } from "./task.js";

export const SURVEY = "discreet/survey/v1";

export interface Survey {
  /** One report of an answer. A wrong answer is refused. In a repeated survey, an answer is drawn once and kept. */
  encode(value: unknown): Promise<Report>;
}

/** A survey from the bytes of its task. */
export function survey(task: TaskBytes, options: Options = {}): Survey {
  const suite = options.suite ?? webCrypto;
  const memory = options.memory ?? ownMemory();
  const opened = read(task, SURVEY, suite, options.hash);
  opened.catch(() => {}); // said by encode
  return {
    async encode(value) {
      const { facts, hash } = await opened;
      const draws = drawsFrom(suite.random);
      const drawn = (): Report => reportOf(facts.survey, value, draws);
      if (!facts.repeated) return drawn();
      const key = `discreet/${hex(hash)}/${known(PLACES, facts.survey.kind)(facts.survey, value)}`;
      let kept = memory.getItem(key);
      if (kept === null) memory.setItem(key, (kept = JSON.stringify(drawn()))); // before it is reported
      const permanent: Report = JSON.parse(kept);
      return facts.repeated.each_round ? renewed(facts.repeated.each_round, permanent, draws) : permanent;
    },
  };
}
