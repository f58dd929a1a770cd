// How the page is built: one document with hashed assets and relative addresses, so that it works behind any
// path prefix. Tests run in Node; what touches the DOM is tested in the browser (see e2e/).
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  worker: { format: "es" },
  test: { include: ["src/**/*.test.ts"] },
});
