//! Address of the viewer under test; starts the mock node if requested.

import { preview } from "vite";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    baseUrl: string;
  }
}

const MOCK_PORT = 4181;

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.CORRIDOR_E2E_URL;
  if (given !== undefined) {
    project.provide("baseUrl", given);
    return undefined;
  }
  if (process.env.CORRIDOR_E2E_MOCK === undefined) {
    throw new Error("expected CORRIDOR_E2E_URL, the address of a running viewer with its token");
  }
  const root = new URL("..", import.meta.url).pathname;
  const configFile = `${root}mock/vite.config.ts`;
  const server = await preview({ root, configFile, logLevel: "warn", preview: { port: MOCK_PORT } });
  project.provide("baseUrl", `http://127.0.0.1:${MOCK_PORT}/#token=demo`);
  return () => server.close();
}
