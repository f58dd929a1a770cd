// End to end: a real browser on a running viewer. `CORRIDOR_E2E_URL` names it (with its token);
// `CORRIDOR_E2E_OUT`: folder for screenshots.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["*.e2e.ts"],
    globalSetup: ["./setup.ts"],
    testTimeout: 200_000,
    hookTimeout: 60_000,
    // The steps of a visit follow each other on one page; after a failure the rest says nothing.
    bail: 1,
    fileParallelism: false,
  },
});
