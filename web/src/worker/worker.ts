//! Entry of the worker: reads the network and decodes pictures outside the page's thread, so that a busy page does not
//! delay the network and a large picture does not delay the page.

import { messageHandler } from "./handler.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

// The page's library types know windows; here `self` is a dedicated worker, whose `postMessage` takes a transfer list.
const scope = self as unknown as { postMessage(message: FromWorker, transfer: Transferable[]): void };

const handle = messageHandler((message, transfer = []) => {
  scope.postMessage(message, transfer);
});

self.onmessage = (event: MessageEvent<ToWorker>) => {
  handle(event.data);
};
