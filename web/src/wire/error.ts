//! Errors on the wire: a stable number of the kind, whether a retry can help, a message for users, and the context.

import type { Reader, Writer } from "./codec.ts";

/** Stable numbers of the kinds that this side distinguishes. */
export const ErrorKind = {
  internal: 1,
  invalid: 2,
  notFound: 3,
  corrupt: 4,
  unsupported: 5,
  denied: 6,
  cancelled: 9,
  unreachable: 10,
  busy: 13,
} as const;

export interface RemoteError {
  readonly kind: number;
  /** True if a retry may help. */
  readonly mayRetry: boolean;
  readonly message: string;
  /** Innermost context first. */
  readonly context: readonly string[];
}

export function readError(reader: Reader): RemoteError {
  const kind = reader.u16();
  const mayRetry = reader.u8() === 1;
  return { kind, mayRetry, message: reader.str(), context: reader.list((r) => r.str()) };
}

export function writeError(writer: Writer, error: RemoteError): void {
  writer
    .u16(error.kind)
    .u8(error.mayRetry ? 1 : 0)
    .str(error.message)
    .list(error.context, (w, place) => w.str(place));
}

/** Formats an error as one line for users, outermost context first. */
export function describeError(error: RemoteError): string {
  return [...error.context].reverse().concat(error.message).join(": ");
}

/** Message of a thrown value. */
export function describeThrown(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
