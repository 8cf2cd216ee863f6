import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RunSocket, type SocketLike, socketUrl } from "../src/events.ts";
import type { Frame } from "../src/frames.ts";
import { SIX, type Wire } from "./recorded.ts";

/** The other end of a socket: what was sent to it, and how to answer. */
class FakeSocket implements SocketLike {
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: Wire[] = [];
  onopen: ((event: Event) => unknown) | null = null;
  onmessage: ((event: MessageEvent) => unknown) | null = null;
  onclose: ((event: CloseEvent) => unknown) | null = null;
  onerror: ((event: Event) => unknown) | null = null;
  closedWith: number | undefined;

  constructor() {
    FakeSocket.all.push(this);
  }

  send(data: string): void {
    this.sent.push(JSON.parse(data) as Wire);
  }

  close(code?: number): void {
    this.readyState = 3;
    this.closedWith = code;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.({} as Event);
    this.say({ message: "Mode set to text" });
  }

  say(message: Wire): void {
    this.onmessage?.({ data: JSON.stringify(message) } as MessageEvent);
  }

  breakOff(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code } as CloseEvent);
  }

  /** Answers the last attach like the gateway: the head, then the frames after the cursor, up to `newest`. */
  replay(frames: readonly Wire[], newest: number): void {
    const attach = this.sent.filter((one) => one["command"] === "reconnect_job").at(-1);
    const data = attach?.["data"] as { last_seq: number };
    const rest = frames.slice(data.last_seq, newest);
    this.say({ type: "job_resumed", job_id: "J", status: "running", last_seq: newest, replay_count: rest.length, replay_incomplete: false });
    rest.forEach((frame) => this.say(frame));
  }
}

function last(): FakeSocket {
  const socket = FakeSocket.all.at(-1);
  if (socket === undefined) throw new Error("nothing connected");
  return socket;
}

function numbers(frames: readonly Frame[]): (number | null)[] {
  return frames.filter((one) => one.type !== "job_resumed").map((one) => one.job_seq);
}

const ALL = SIX.map((_, at) => at + 1);

beforeEach(() => {
  FakeSocket.all = [];
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

describe("RunSocket", () => {
  it("w_002_asks_for_text_before_it_attaches", () => {
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: () => undefined });
    last().readyState = 1;
    last().onopen?.({} as Event);
    last().onmessage?.({ data: new ArrayBuffer(3) } as MessageEvent);
    expect(last().sent).toEqual([{ command: "set_mode", data: { mode: "text" } }]);
    last().say({ message: "Mode set to text" });
    expect(last().sent.at(-1)).toEqual({ command: "reconnect_job", data: { job_id: "J", last_seq: 0 } });
  });

  it.each([1, 5, 9, 13, SIX.length - 1])("w_045_a_break_after_frame_%i_loses_nothing_and_doubles_nothing", (cut) => {
    const frames: Frame[] = [];
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: (frame) => frames.push(frame) });
    last().open();
    last().replay(SIX, cut);
    last().breakOff();
    vi.advanceTimersByTime(1_000);
    expect(FakeSocket.all).toHaveLength(2);
    last().open();
    expect(last().sent.at(-1)).toEqual({ command: "reconnect_job", data: { job_id: "J", last_seq: cut } });
    last().replay(SIX, SIX.length);
    expect(numbers(frames)).toEqual(ALL);
  });

  it("a_full_replay_on_the_same_socket_doubles_nothing", () => {
    const frames: Frame[] = [];
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: (frame) => frames.push(frame) });
    last().open();
    last().replay(SIX, 10);
    SIX.forEach((frame) => last().say(frame));
    expect(numbers(frames)).toEqual(ALL);
  });

  it("live_frames_that_overtake_the_replay_do_not_swallow_it", () => {
    const first: Frame[] = [];
    const second: Frame[] = [];
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: (frame) => first.push(frame) });
    last().open();
    last().replay(SIX, 6);
    socket.watch("J", { onFrame: (frame) => second.push(frame) });
    const overtaking = SIX[6];
    if (overtaking !== undefined) last().say(overtaking);
    last().replay(SIX, SIX.length);
    expect(numbers(first)).toEqual(ALL);
    expect(numbers(second)).toEqual(ALL);
  });

  it("a_gateway_that_gave_up_reading_is_asked_again_and_nothing_is_doubled", () => {
    const frames: Frame[] = [];
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: (frame) => frames.push(frame) });
    last().open();
    last().replay(SIX, 6);
    last().say({ type: "error", job_id: "J", message: "the kernel is away" });
    vi.advanceTimersByTime(1_000);
    expect(FakeSocket.all).toHaveLength(1);
    expect(last().sent.at(-1)).toEqual({ command: "reconnect_job", data: { job_id: "J", last_seq: 6 } });
    last().replay(SIX, SIX.length);
    expect(numbers(frames.filter((one) => one.type !== "error"))).toEqual(ALL);
  });

  it("types_nobody_knows_move_the_cursor_and_reach_nobody", () => {
    const frames: Frame[] = [];
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: (frame) => frames.push(frame) });
    last().open();
    last().say({ type: "x_demo", job_id: "J", job_seq: 1 });
    last().say({ type: "job_update", status: "running", job_id: "J", job_seq: 2 });
    last().breakOff();
    vi.advanceTimersByTime(1_000);
    last().open();
    expect(numbers(frames)).toEqual([2]);
    expect(last().sent.at(-1)).toMatchObject({ data: { last_seq: 2 } });
  });

  it("waits_longer_after_each_failure_and_not_after_a_success", () => {
    const states: [string, number][] = [];
    const socket = new RunSocket({
      url: "ws://x/ws",
      connect: () => new FakeSocket(),
      onState: (state, failures) => states.push([state, failures]),
    });
    socket.watch("J", { onFrame: () => undefined });
    last().breakOff();
    vi.advanceTimersByTime(390);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(300);
    expect(FakeSocket.all).toHaveLength(2);
    last().breakOff();
    vi.advanceTimersByTime(600);
    expect(FakeSocket.all).toHaveLength(2);
    vi.advanceTimersByTime(400);
    expect(FakeSocket.all).toHaveLength(3);
    last().open();
    expect(states.at(-1)).toEqual(["open", 0]);
  });

  it("a_silent_connection_is_given_up", () => {
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: () => undefined });
    last().open();
    vi.advanceTimersByTime(60_000);
    last().say({ type: "ping", ts: 1 });
    expect(last().sent.at(-1)).toEqual({ type: "pong", ts: 1 });
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(12_000);
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("a_refusal_for_good_is_not_tried_again", () => {
    let state = "";
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket(), onState: (one) => (state = one) });
    socket.watch("J", { onFrame: () => undefined });
    last().open();
    last().breakOff(1008);
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
    expect(state).toBe("closed");
  });

  it("the_end_of_the_last_run_closes_the_connection", () => {
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: () => undefined });
    last().open();
    last().replay(SIX, SIX.length);
    expect(last().closedWith).toBe(1000);
    last().breakOff(1000);
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("an_unknown_run_ends_the_watch", () => {
    const frames: Frame[] = [];
    const socket = new RunSocket({ url: "ws://x/ws", connect: () => new FakeSocket() });
    socket.watch("J", { onFrame: (frame) => frames.push(frame) });
    last().open();
    last().say({ type: "job_update", status: "failed", job_id: "J", error: "Job J not found" });
    expect(frames).toMatchObject([{ type: "job_update", error: "Job J not found" }]);
    expect(last().closedWith).toBe(1000);
  });
});

it("the_socket_is_beside_the_page", () => {
  expect(socketUrl("https://host:1/")).toBe("wss://host:1/ws");
  expect(socketUrl("http://127.0.0.1:7777")).toBe("ws://127.0.0.1:7777/ws");
});
