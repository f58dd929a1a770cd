//! Entry of the worker: reads the network and decodes pictures outside the page's thread, so that a busy page does not
//! delay the network and a large picture does not delay the page.

import { Connection } from "./connection.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

let connection: Connection | null = null;

// The page's library types know windows; here `self` is a dedicated worker, whose `postMessage` takes a transfer list.
const scope = self as unknown as { postMessage(message: FromWorker, transfer: Transferable[]): void };

function post(message: FromWorker, transfer: Transferable[] = []): void {
  scope.postMessage(message, transfer);
}

self.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  switch (message.kind) {
    case "connect":
      connection?.close();
      connection = new Connection(message.url, message.token, message.join, post);
      return;
    case "note":
      connection?.note(message.note);
      return;
    case "interpret":
      connection?.interpret(message.meaning);
      return;
    case "stats":
      connection?.stats(message);
      return;
  }
};
