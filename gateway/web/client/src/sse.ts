/**
 * Following a run over its event stream: one request, resumed by cursor until the run has ended. It needs nothing but
 * `fetch`, so it works behind proxies that refuse sockets. The socket is in `events.ts`.
 */

import { backoffMs, pause } from "./backoff.ts";
import { type Frame, decodeFrame, isTerminal, stampsOf } from "./frames.ts";
import { type Api, ApiError } from "./http.ts";
import { isRecord } from "./read.ts";

/** One event of a stream. */
export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** How to follow a run. */
export interface FollowOptions {
  /** Frames up to this number are known already. */
  afterSeq?: number;
  onFrame: (frame: Frame) => void;
  /** Told whenever the stream opens (`true`) or breaks (`false`). */
  onConnected?: (connected: boolean) => void;
  /** A frame of a known type that lacks a field. */
  onInvalid?: (type: string, reason: string) => void;
  signal: AbortSignal;
}

/**
 * Follows a run to its end. Resolves when the run has ended or the signal is aborted.
 *
 * @throws {ApiError} when the gateway refuses for a reason that trying again will not mend.
 */
export async function followRun(api: Api, jobId: string, options: FollowOptions): Promise<void> {
  let cursor = options.afterSeq ?? 0;
  let attempt = 0;
  while (!options.signal.aborted) {
    try {
      const response = await api.openEvents(jobId, cursor, options.signal);
      options.onConnected?.(true);
      for await (const event of readEvents(response.body)) {
        attempt = 0;
        const message = parse(event.data);
        const seq = isRecord(message) ? stampsOf(message).job_seq : null;
        if (seq !== null) {
          if (seq <= cursor) continue;
          cursor = seq;
        }
        const decoded = decodeFrame(message);
        if (decoded.kind === "invalid") options.onInvalid?.(decoded.type, decoded.reason);
        if (decoded.kind !== "frame") continue;
        options.onFrame(decoded.frame);
        if (decoded.frame.type === "job_update" && isTerminal(decoded.frame.status)) return;
      }
    } catch (error) {
      if (options.signal.aborted) return;
      if (error instanceof ApiError && !isTransient(error)) throw error;
    }
    options.onConnected?.(false);
    await pause(backoffMs(attempt), options.signal);
    attempt += 1;
  }
}

function isTransient(error: ApiError): boolean {
  return error.status === 0 || error.status === 429 || error.status >= 500;
}

/** The events in a body, as they arrive. */
export async function* readEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerEvent> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Also when the reader stops early: the connection must not stay open behind its back.
    await reader.cancel().catch(() => undefined);
  }
}

/** Takes a stream apart into events, however it was cut into pieces. */
export class EventParser {
  #rest = "";
  #id = "";
  #event = "";
  #data: string[] = [];

  /** The events that are complete with this piece. */
  *push(piece: string): Generator<ServerEvent> {
    this.#rest += piece;
    for (;;) {
      // A lone CR at the very end may be the first half of a CRLF: wait for what follows.
      const end = /\r\n|\n|\r(?=[^\n])/.exec(this.#rest);
      if (end === null) return;
      const line = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      if (line !== "") {
        this.#field(line);
        continue;
      }
      if (this.#data.length > 0) {
        yield { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
      }
      this.#event = "";
      this.#data = [];
    }
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (name) {
      case "id":
        this.#id = value;
        return;
      case "event":
        this.#event = value;
        return;
      case "data":
        this.#data.push(value);
        return;
      default:
        return;
    }
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
