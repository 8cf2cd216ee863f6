/**
 * Following runs over the gateway's socket. One socket serves any number of runs; each watch has a cursor, so that after
 * a break it goes on where it stopped, without a gap and without doubles. The event stream is in `sse.ts`.
 */

import { backoffMs } from "./backoff.ts";
import { type Frame, decodeFrame, isTerminal, stampsOf } from "./frames.ts";
import { isRecord } from "./read.ts";

/** `connecting` also between two tries; `closed` when nothing is watched or the gateway refuses for good. */
export type SocketState = "connecting" | "open" | "closed";

/** The part of `WebSocket` that is used; the browser's and Node's own both have it. */
export interface SocketLike {
  readonly readyState: number;
  onopen: ((event: Event) => unknown) | null;
  onmessage: ((event: MessageEvent) => unknown) | null;
  onclose: ((event: CloseEvent) => unknown) | null;
  onerror: ((event: Event) => unknown) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

/** How to reach the socket. */
export interface SocketOptions {
  /** `ws://…/ws`; see {@link socketUrl}. */
  url: string;
  /** For tests and runtimes without a socket of their own. */
  connect?: (url: string) => SocketLike;
  /** Told whenever the connection changes, with the number of tries that failed in a row. */
  onState?: (state: SocketState, failures: number) => void;
  /** A frame of a known type that lacks a field. */
  onInvalid?: (type: string, reason: string) => void;
}

/** How to watch one run. */
export interface WatchOptions {
  /** Frames up to this number are known already. */
  afterSeq?: number;
  onFrame: (frame: Frame) => void;
}

interface Watch {
  readonly jobId: string;
  readonly onFrame: (frame: Frame) => void;
  cursor: number;
  /** Whether the answer to this connection's attach has come; until then only the very next frame is taken. */
  attached: boolean;
  /** How often in a row the gateway gave up reading the run on a connection that stands. */
  failures: number;
}

/** Longer than two of the server's pings: a connection this quiet is dead. */
const SILENCE_MS = 70_000;
const CONNECT_MS = 10_000;
/** Closings that say "do not come back": policy, and refused or withdrawn authentication. */
const FINAL_CODES: ReadonlySet<number> = new Set([1008, 4001, 4003]);

/** A socket to the gateway that comes back by itself. It is open only while something is watched. */
export class RunSocket {
  readonly #options: SocketOptions;
  readonly #watches = new Set<Watch>();
  #socket: SocketLike | null = null;
  #ready = false;
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #guard: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  /** Watches a run until its end, or until the function that is returned is called. */
  watch(jobId: string, options: WatchOptions): () => void {
    const watch: Watch = { jobId, onFrame: options.onFrame, cursor: options.afterSeq ?? 0, attached: false, failures: 0 };
    this.#watches.add(watch);
    if (this.#ready) this.#attach(watch);
    else if (this.#socket === null) this.retryNow();
    return () => this.#drop(watch);
  }

  /** Tries at once instead of waiting: for when the network or the page has come back. */
  retryNow(): void {
    if (this.#socket !== null || this.#watches.size === 0) return;
    clearTimeout(this.#retry);
    this.#connect();
  }

  /** Stops watching everything and closes the connection. */
  close(): void {
    this.#watches.clear();
    this.#hangUp();
  }

  #connect(): void {
    this.#tell("connecting");
    const socket = this.#options.connect?.(this.#options.url) ?? new WebSocket(this.#options.url);
    this.#socket = socket;
    this.#ready = false;
    this.#rearm(CONNECT_MS);
    socket.onopen = () => send(socket, { command: "set_mode", data: { mode: "text" } });
    socket.onmessage = (event) => {
      if (this.#socket === socket) this.#message(socket, event.data);
    };
    socket.onerror = () => undefined;
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#closed(event.code);
    };
  }

  #message(socket: SocketLike, data: unknown): void {
    this.#rearm(SILENCE_MS);
    // Frames from before the switch to text are binary, and none of them is of a run watched here.
    if (typeof data !== "string") return;
    if (!this.#ready) {
      this.#ready = true;
      this.#failures = 0;
      this.#tell("open");
      for (const watch of this.#watches) this.#attach(watch);
    }
    const message = parse(data);
    if (!isRecord(message)) return;
    if (message["type"] === "ping") return send(socket, { type: "pong", ts: message["ts"] });
    this.#deliver(message);
  }

  #deliver(message: Record<string, unknown>): void {
    const { job_id: jobId, job_seq: seq } = stampsOf(message);
    if (jobId === "") return;
    const decoded = decodeFrame(message);
    if (decoded.kind === "invalid") this.#options.onInvalid?.(decoded.type, decoded.reason);
    const frame = decoded.kind === "frame" ? decoded.frame : null;
    for (const watch of [...this.#watches]) {
      if (watch.jobId !== jobId) continue;
      if (frame?.type === "job_resumed") {
        watch.attached = true;
        watch.failures = 0;
      }
      if (seq !== null) {
        // Before the replay has begun, a later live frame must not push the cursor over what is still to come.
        if (seq <= watch.cursor || (!watch.attached && seq !== watch.cursor + 1)) continue;
        watch.cursor = seq;
      }
      if (frame === null) continue;
      watch.onFrame(frame);
      if (frame.type === "job_update" && isTerminal(frame.status)) this.#drop(watch);
      // An error without a number is of the gateway, which no longer reads the run: the run itself may go on.
      if (frame.type === "error" && seq === null) this.#attachAgain(watch);
    }
  }

  #attach(watch: Watch): void {
    watch.attached = false;
    if (this.#socket === null) return;
    send(this.#socket, { command: "reconnect_job", data: { job_id: watch.jobId, last_seq: watch.cursor } });
  }

  #attachAgain(watch: Watch): void {
    const socket = this.#socket;
    setTimeout(() => {
      if (this.#socket === socket && this.#ready && this.#watches.has(watch)) this.#attach(watch);
    }, backoffMs(watch.failures++));
  }

  #drop(watch: Watch): void {
    this.#watches.delete(watch);
    if (this.#watches.size === 0) this.#hangUp();
  }

  #hangUp(): void {
    clearTimeout(this.#retry);
    clearTimeout(this.#guard);
    const socket = this.#socket;
    this.#socket = null;
    this.#ready = false;
    this.#failures = 0;
    socket?.close(1000, "done");
    this.#tell("closed");
  }

  #closed(code: number): void {
    clearTimeout(this.#guard);
    this.#socket = null;
    this.#ready = false;
    if (FINAL_CODES.has(code)) return this.#tell("closed");
    const wait = backoffMs(this.#failures);
    this.#failures += 1;
    this.#tell("connecting");
    this.#retry = setTimeout(() => this.retryNow(), wait);
  }

  /** Gives the connection up when nothing is heard for this long. */
  #rearm(ms: number): void {
    clearTimeout(this.#guard);
    const socket = this.#socket;
    this.#guard = setTimeout(() => {
      if (this.#socket !== socket) return;
      // A dead connection may take minutes to say so: do not wait for its close event.
      socket?.close(4000, "silent");
      this.#closed(1006);
    }, ms);
  }

  #tell(state: SocketState): void {
    this.#options.onState?.(state, this.#failures);
  }
}

/** The socket's address for a base like `https://host`, or for the page's own origin. */
export function socketUrl(base: string): string {
  return `${base.replace(/^http/, "ws").replace(/\/$/, "")}/ws`;
}

function send(socket: SocketLike, message: unknown): void {
  if (socket.readyState === 1) socket.send(JSON.stringify(message));
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
