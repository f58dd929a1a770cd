//! Reason for a failed WebSocket connection, asked from the server by plain HTTP beside the WebSocket.

/** Longest wait for the answer. */
const TIMEOUT_MILLIS = 5000;
/** Longest answer that is shown, characters. */
const MAX_REASON_CHARS = 1000;

const UPGRADE_NOT_FORWARDED =
  "the server answers HTTP, but no WebSocket comes through: a proxy or a filter in between does not forward it. " +
  "A proxy must forward the headers Upgrade and Connection (for nginx: proxy_http_version 1.1; " +
  'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";)';

/** Returns a sentence for people; `socket` is the URL of the WebSocket. */
export async function connectionFailureReason(socket: string, ask: typeof fetch = fetch): Promise<string> {
  try {
    const init = { method: "POST", signal: AbortSignal.timeout(TIMEOUT_MILLIS) };
    const answer = await ask(reachUrl(socket), init);
    const text = (await answer.text()).trim();
    if (answer.ok) return UPGRADE_NOT_FORWARDED;
    if (answer.status === 403 && text.startsWith("refused: ")) return text.slice(0, MAX_REASON_CHARS);
    return `the server cannot be reached: a proxy answers ${answer.status} instead`;
  } catch {
    return "the server cannot be reached";
  }
}

/** URL of the HTTP resource beside the WebSocket. */
export function reachUrl(socket: string): string {
  const url = new URL("reach", socket);
  url.protocol = url.protocol === "wss:" ? "https:" : "http:";
  return url.href;
}
