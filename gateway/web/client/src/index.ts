/** Typed access to an atelier gateway: REST, following runs, and the state of a run. */

export { Api, ApiError, type ApiOptions } from "./http.ts";
export { RunSocket, socketUrl } from "./events.ts";
export type { SocketLike, SocketOptions, SocketState, WatchOptions } from "./events.ts";
export { EventParser, followRun, readEvents } from "./sse.ts";
export type { FollowOptions, ServerEvent } from "./sse.ts";
export { RunStore } from "./store.ts";
export { reduce } from "./reduce/reduce.ts";
export * from "./state.ts";
export * from "./frames.ts";
export * from "./types.ts";
export * from "./values.ts";
export * as money from "./money.ts";
