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

/** The entry of a table by its name. What this part of the package does not have is refused. */
export function known<Entry>(table: Record<string, Entry>, name: string): Entry {
  if (!Object.hasOwn(table, name))
    throw new ReportError("not-supported", `"${name}" is not known here. Try @discreet/reports/all.`);
  return table[name]!;
}
