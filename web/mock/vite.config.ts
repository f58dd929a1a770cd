// Serves the built page with a mock node behind it: `npm run mock`, then open the address with `#token=demo`.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

import { defineConfig } from "vite";
import { WebSocketServer } from "ws";

import { colormapsJson } from "./colormaps.ts";
import { MockNode } from "./node.ts";

/** Strictest policy that the page supports; a node may allow more. */
const POLICY =
  "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' blob:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

export default defineConfig({
  preview: {
    headers: { "Content-Security-Policy": POLICY },
    host: "127.0.0.1",
    port: Number(process.env.PORT ?? 4180),
    strictPort: true,
  },
  plugins: [
    {
      name: "mock-node",
      configurePreviewServer(server) {
        const sockets = new WebSocketServer({ noServer: true });
        server.httpServer.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
          if (request.url !== "/wire") return;
          sockets.handleUpgrade(request, socket, head, (client) => new MockNode(client));
        });
        server.middlewares.use("/colormaps.json", (_, response) => {
          response.setHeader("Content-Type", "application/json").end(colormapsJson());
        });
      },
    },
  ],
});
