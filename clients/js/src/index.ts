/** Reports from any device: randomized here, so that what leaves it protects the person. */

export { ReportError } from "./errors.js";
export type { Report } from "./oracles.js";
export { type Poll, type PollOptions, poll, type Sealed } from "./poll.js";
export type { Suite } from "./suite.js";
export { type Survey, survey } from "./survey.js";
export type { Memory, Options, TaskBytes } from "./task.js";
