//! Servers that the viewing node reads from, as it reports them.

import { texts } from "../texts/texts.ts";
import { isArray, isCount, isObject, parseJson, textOr, type Json } from "../json.ts";

/** State of one server. */
export interface Server {
  /** Address, for display. */
  readonly name: string;
  /** Its data set, if servers have different ones. */
  readonly dataset: string | null;
  /** Reason for not using it; null while it is used. */
  readonly unavailableReason: string | null;
  /** Bytes received from it. */
  readonly deliveredBytes: number;
}

/** Maximum number of servers shown; a node reads from at most 32, except for catalogues of many data sets. */
const MAX_SERVERS = 256;

/** Reads an item's body. Throws an `Error` that names what is wrong. */
export function parseServers(body: Uint8Array): Server[] {
  const value = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  if (!isObject(value) || !isArray(value.servers)) throw new Error("expected a list of servers, found none");
  return value.servers.slice(0, MAX_SERVERS).map(parseServer);
}

function parseServer(value: Json): Server {
  if (!isObject(value)) throw new Error("expected a server, found something else");
  return {
    name: textOr(value.server, ""),
    dataset: typeof value.dataset === "string" ? value.dataset : null,
    unavailableReason: value.is_used === true ? null : textOr(value.why_not, texts.servers.notUsed),
    deliveredBytes: isCount(value.delivered_bytes) ? value.delivered_bytes : 0,
  };
}
