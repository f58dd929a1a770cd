//! Why there is no WebSocket: what the server says by plain HTTP at the same place.

/** How long it may take to say so. */
const ANSWER_WITHIN_MILLIS = 5000;
/** Longest answer that is shown, characters. */
const MOST_CHARS = 1000;

const NO_SOCKET =
  "the page's server answers, but no WebSocket comes through to it: a proxy or a filter in between does not pass it on. " +
  "A proxy has to pass on the headers Upgrade and Connection (for nginx: proxy_http_version 1.1; " +
  'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";)';

/** A sentence for people; `socket` is the WebSocket's address. */
export async function whyNoSocket(socket: string, ask: typeof fetch = fetch): Promise<string> {
  try {
    const init = { method: "POST", signal: AbortSignal.timeout(ANSWER_WITHIN_MILLIS) };
    const answer = await ask(reachAddress(socket), init);
    const text = (await answer.text()).trim();
    if (answer.ok) return NO_SOCKET;
    if (answer.status === 403 && text.startsWith("refused: ")) return text.slice(0, MOST_CHARS);
    return `the server cannot be reached: a proxy in between answers ${answer.status} in its place`;
  } catch {
    return "the server cannot be reached";
  }
}

/** Beside the WebSocket, by the protocol that it begins with. */
export function reachAddress(socket: string): string {
  const url = new URL("reach", socket);
  url.protocol = url.protocol === "wss:" ? "https:" : "http:";
  return url.href;
}
