import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "@atelier/client": fileURLToPath(new URL("./client/src/index.ts", import.meta.url)) } },
  test: { include: ["client/test/**/*.test.ts", "console/test/**/*.test.ts"] },
});
