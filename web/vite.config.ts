// How the page is built: one document with hashed assets and relative addresses, so that it works behind any
// path prefix. Tests run in Node; what touches the DOM is tested in the browser (see e2e/).
import { defineConfig } from "vitest/config";

/** Address of a running viewer, without its token: `npm run dev` serves the page with that node behind it. */
const node = process.env.CORRIDOR_NODE ?? "http://127.0.0.1:26775";
// The node answers only requests of its own page.
const proxied = { target: node, ws: true, changeOrigin: true, headers: { origin: node } };

export default defineConfig({
  base: "./",
  server: { proxy: { "/wire": proxied, "/reach": proxied, "/colormaps.json": proxied } },
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  worker: { format: "es" },
  test: { include: ["src/**/*.test.ts"] },
});
