/** An error with a code. It never holds an answer, so it can be logged. */
export class ReportError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ReportError";
  }
}
