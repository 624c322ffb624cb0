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

/** The refusal of a kind or method that this entry of the package does not have. */
export function unknown(kind: string): ReportError {
  return new ReportError("not-supported", `"${kind}" is not known here. Try @discreet/reports/all.`);
}
