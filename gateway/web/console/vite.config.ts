import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const gateway = process.env["ATELIER_URL"] ?? "http://127.0.0.1:7777";

// File names without hashes: the build is committed, and the gateway gives each file an ETag of its content.
export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: {
    alias: { "@atelier/client": fileURLToPath(new URL("../client/src/index.ts", import.meta.url)) },
  },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        entryFileNames: "assets/app.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/app[extname]",
      },
    },
  },
  server: {
    proxy: { "/api": gateway, "/ws": { target: gateway, ws: true } },
  },
});
