/** Streams of frames for the tests: recorded ones, and ones written down like recordings. */

import { type Frame, decodeFrame } from "../src/frames.ts";
import simple from "./simple-run.json";

export type Wire = Record<string, unknown>;

/** Stamps bare frames like the gateway does: run J of workflow W, numbered from 1. */
export function stamped(frames: readonly Wire[], job = "J"): Wire[] {
  return frames.map((frame, at) => ({ job_id: job, workflow_id: "W", job_seq: at + 1, ...frame }));
}

/** Reads frames that must all be known and whole. */
export function decoded(frames: readonly Wire[]): Frame[] {
  return frames.map((frame) => {
    const result = decodeFrame(frame);
    if (result.kind !== "frame") throw new Error(`${String(frame["type"])} was not read: ${result.kind}`);
    return result.frame;
  });
}

/** Constant → generator → image output: fourteen frames. */
export const SIMPLE: Wire[] = stamped(simple as Wire[]);

export function image(k: number): Wire {
  return {
    type: "image",
    uri: `/api/storage/1/A${k}.png`,
    asset_uri: `asset://A${k}.png`,
    asset_id: `A${k}`,
    data: null,
  };
}

export function call(k: number, status: string, more: Wire = {}): Wire {
  return {
    type: "prediction",
    id: `P${k}`,
    user_id: "1",
    node_id: "g",
    provider: "sketch",
    model: "sketch-image",
    capability: "text_to_image",
    status,
    asset_ids: status === "completed" ? [`A${k}`] : [],
    receipt:
      status === "completed"
        ? { provider_request_id: `r-${k}`, cost: { amount: 0.04, amount_exact: "0.040000000", currency: "USD" } }
        : null,
    params: { prompt: `lantern ${k}` },
    cost: status === "completed" ? 0.04 : null,
    ...(status === "completed" ? { cost_exact: "0.040000000" } : {}),
    error: null,
    ...more,
  };
}

export function node(status: string, more: Wire = {}): Wire {
  return { type: "node_update", node_id: "g", node_name: "Draw", node_type: "image", status, result: null, error: null, ...more };
}

export function commit(k: number, more: Wire = {}): Wire {
  return {
    type: "generation_complete",
    node_id: "g",
    node_name: "Draw",
    node_type: "image",
    index: k,
    outputs: { output: image(k) },
    generation_ids: [`P${k}`],
    ...more,
  };
}

/** One node, six prompts, six variants. */
export const SIX: Wire[] = stamped([
  { type: "job_update", status: "running" },
  node("running"),
  ...[0, 1, 2, 3, 4, 5].flatMap((k) => [call(k, "running"), call(k, "completed"), commit(k)]),
  node("completed", { result: { output: image(5) } }),
  { type: "job_update", status: "completed", duration: 3.2, result: { outputs: { pictures: [0, 1, 2, 3, 4, 5].map(image) } } },
]);

/** The fourth of six calls fails. */
export const FAILS_AT_3: Wire[] = stamped([
  { type: "job_update", status: "running" },
  node("running"),
  ...[0, 1, 2].flatMap((k) => [call(k, "running"), call(k, "completed"), commit(k)]),
  call(3, "running"),
  call(3, "failed", { error: "content refused" }),
  node("error", { error: "content refused" }),
  { type: "job_update", status: "failed", error: "content refused" },
]);

/** Cancelled while the third of six calls runs; the second had already been paid for and is committed late. */
export const CANCELLED: Wire[] = stamped([
  { type: "job_update", status: "running" },
  node("running"),
  call(0, "running"),
  call(0, "completed"),
  commit(0),
  call(1, "running"),
  call(1, "completed"),
  call(2, "running"),
  call(2, "cancelled"),
  commit(1),
  { type: "job_update", status: "cancelled" },
]);
