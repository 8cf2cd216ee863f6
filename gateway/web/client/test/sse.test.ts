import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Frame } from "../src/frames.ts";
import { Api } from "../src/http.ts";
import { EventParser, followRun } from "../src/sse.ts";
import { SIX, type Wire } from "./recorded.ts";

function written(frames: readonly Wire[]): string {
  return frames
    .map((frame) => `id: ${String(frame["job_seq"])}\nevent: ${String(frame["type"])}\ndata: ${JSON.stringify(frame)}\n\n`)
    .join("");
}

describe("EventParser", () => {
  it.each([1, 2, 3, 7, 1_000])("reads_the_same_in_pieces_of_%i", (size) => {
    const stream = ": hello\r\n\r\nid: 1\r\nevent: a\r\ndata: one\r\ndata: two\r\n\r\nid:2\ndata:{}\n\nretry: 5\nevent: empty\n\n";
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < stream.length; at += size) events.push(...parser.push(stream.slice(at, at + size)));
    expect(events).toEqual([
      { id: "1", event: "a", data: "one\ntwo" },
      { id: "2", event: "message", data: "{}" },
    ]);
  });
});

describe("followRun", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("goes_on_by_cursor_when_the_stream_breaks_and_stops_at_the_end", async () => {
    const asked: string[] = [];
    const api = new Api({
      fetch: (input) => {
        asked.push(String(input));
        const after = Number(/after_seq=(\d+)/.exec(String(input))?.[1]);
        // The first stream breaks after seven frames; the second repeats one that is known.
        const part = asked.length === 1 ? SIX.slice(0, 7) : SIX.slice(after - 1);
        return Promise.resolve(new Response(written(part)));
      },
    });
    const frames: Frame[] = [];
    const connected: boolean[] = [];
    const done = followRun(api, "J", {
      onFrame: (frame) => frames.push(frame),
      onConnected: (one) => connected.push(one),
      signal: new AbortController().signal,
    });
    await vi.runAllTimersAsync();
    await done;
    expect(asked).toEqual(["/api/v1/jobs/J/events?after_seq=0", "/api/v1/jobs/J/events?after_seq=7"]);
    expect(frames.map((one) => one.job_seq)).toEqual(SIX.map((_, at) => at + 1));
    expect(connected).toEqual([true, false, true]);
  });

  it("a_refusal_that_will_not_mend_is_thrown", async () => {
    const api = new Api({ fetch: () => Promise.resolve(new Response("{}", { status: 404 })) });
    const options = { onFrame: () => undefined, signal: new AbortController().signal };
    await expect(followRun(api, "J", options)).rejects.toMatchObject({ code: "not_found" });
  });

  it("stops_when_told_to", async () => {
    const controller = new AbortController();
    const api = new Api({ fetch: () => Promise.reject(new TypeError("down")) });
    const done = followRun(api, "J", { onFrame: () => undefined, signal: controller.signal });
    await vi.advanceTimersByTimeAsync(2_000);
    controller.abort();
    await expect(done).resolves.toBeUndefined();
  });
});
