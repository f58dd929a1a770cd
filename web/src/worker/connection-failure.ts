//! Reason for a failed WebSocket connection, requested from the server by plain HTTP beside the WebSocket.

import { texts } from "../texts/texts.ts";

/** Longest wait for the answer. */
const TIMEOUT_MILLIS = 5000;
/** Maximum number of bytes of the answer that are read and shown. */
const MAX_REASON_BYTES = 1000;

/** Returns a message for users; `socket` is the URL of the WebSocket. */
export async function connectionFailureReason(socket: string, ask: typeof fetch = fetch): Promise<string> {
  try {
    const init = { method: "POST", signal: AbortSignal.timeout(TIMEOUT_MILLIS) };
    const answer = await ask(reachUrl(socket), init);
    const text = (await beginningOf(answer.body, MAX_REASON_BYTES)).trim();
    if (answer.ok) return texts.connection.upgradeNotForwarded;
    if (answer.status === 403 && text.startsWith("refused: ")) return text;
    return texts.connection.proxyAnswers(answer.status);
  } catch {
    return texts.connection.unreachable;
  }
}

/** Reads at most `maxBytes` of a text and cancels the rest: a proxy may answer with any amount of data. */
async function beginningOf(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string> {
  if (!body) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let left = maxBytes; left > 0;) {
    const { done, value } = await reader.read();
    if (done) break;
    const part = value.subarray(0, left);
    left -= part.length;
    text += decoder.decode(part, { stream: true });
  }
  await reader.cancel();
  return text;
}

/** URL of the HTTP resource beside the WebSocket. */
export function reachUrl(socket: string): string {
  const url = new URL("reach", socket);
  url.protocol = url.protocol === "wss:" ? "https:" : "http:";
  return url.href;
}
