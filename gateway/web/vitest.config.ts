import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["client/test/**/*.test.ts", "console/test/**/*.test.ts"] },
});
