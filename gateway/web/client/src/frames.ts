/**
 * The frames of a run, as they come over the socket and the event stream: their types, and `decodeFrame`, which turns
 * parsed JSON into one of them. What a frame does to a run's state is in `reduce/`.
 */

import { type Fields, isRecord, numberOrNull, record, text, textOrNull, texts } from "./read.ts";
import type { Issue } from "./types.ts";

/** The stamps of every run frame. */
export interface Stamps {
  /** The run the frame belongs to; empty on frames of no run. */
  job_id: string;
  workflow_id: string | null;
  /** 1, 2, 3 … per run; null on frames that are not part of the run's log. */
  job_seq: number | null;
}

/** The run as a whole changed. */
export interface JobUpdate extends Stamps {
  type: "job_update";
  status: string;
  message: string | null;
  /** Values by the public name of the output node, with the final frame of a completed run. */
  outputs: Record<string, unknown[]> | null;
  error: string | null;
  error_code: string | null;
  duration: number | null;
  queue_position: number | null;
  issues: Issue[];
}

/** The answer to attaching to a run; the replayed frames follow it. */
export interface JobResumed extends Stamps {
  type: "job_resumed";
  status: string;
  last_seq: number;
  replay_count: number;
  /** Whether some of the frames asked for are no longer kept. */
  replay_incomplete: boolean;
}

/** A node's life cycle. Its artifacts come with `generation_complete`. */
export interface NodeUpdate extends Stamps {
  type: "node_update";
  node_id: string;
  node_name: string;
  node_type: string;
  status: string;
  result: unknown;
  error: string | null;
  properties: Fields;
}

/** A node committed one result: the k-th variant of this node in this run. */
export interface GenerationComplete extends Stamps {
  type: "generation_complete";
  node_id: string;
  node_name: string;
  node_type: string;
  /** Which variant; null only from servers that do not number them. */
  index: number | null;
  outputs: Fields;
  properties: Fields;
  /** The ledger's rows behind this result. */
  generation_ids: string[];
}

/** Something to show while it is being made; never the artifact itself. */
export interface OutputUpdate extends Stamps {
  type: "output_update";
  node_id: string;
  node_name: string;
  output_name: string;
  output_type: string;
  value: unknown;
  disposition: "append" | "replace";
}

/** How far a node has come. */
export interface NodeProgress extends Stamps {
  type: "node_progress";
  node_id: string;
  progress: number;
  total: number;
}

/** Traffic on an edge. */
export interface EdgeUpdate extends Stamps {
  type: "edge_update";
  edge_id: string;
  status: string;
  counter: number | null;
}

/** The life of one row of the ledger. */
export interface Prediction extends Stamps {
  type: "prediction";
  id: string;
  node_id: string;
  provider: string;
  model: string;
  capability: string;
  status: string;
  asset_ids: string[];
  params: Fields;
  /** Exact decimal text; null means unknown, never nothing. */
  cost: string | null;
  currency: string | null;
  provider_request_id: string | null;
  error: string | null;
  /** Seconds. */
  duration: number | null;
  started_at: string | null;
}

/** A line a node wrote. */
export interface LogUpdate extends Stamps {
  type: "log_update" | "notification";
  node_id: string;
  node_name: string;
  content: string;
  severity: string;
}

/** A piece of text or media while a model is still talking. */
export interface Chunk extends Stamps {
  type: "chunk";
  node_id: string;
  content: string;
  content_type: string;
  done: boolean;
}

/** A call to a provider that did not succeed. */
export interface ProviderCallFailed extends Stamps {
  type: "provider_call_failed";
  provider: string;
  model: string | null;
  kind: string;
  message: string;
}

/** A refusal that is not a run's own failure. */
export interface ErrorFrame extends Stamps {
  type: "error";
  message: string;
}

/** Every frame this library understands. */
export type Frame =
  | JobUpdate
  | JobResumed
  | NodeUpdate
  | GenerationComplete
  | OutputUpdate
  | NodeProgress
  | EdgeUpdate
  | Prediction
  | LogUpdate
  | Chunk
  | ProviderCallFailed
  | ErrorFrame;

/** The types in {@link Frame}. */
export type FrameType = Frame["type"];

/** What came of reading one message. */
export type Decoded =
  | { kind: "frame"; frame: Frame }
  /** An acknowledgement, or a type this library does not know: not an error. */
  | { kind: "ignored"; type: string | null }
  /** A known type without a field it must have. */
  | { kind: "invalid"; type: string; reason: string };

type Reader = (fields: Fields, stamps: Stamps) => Frame | string;

const READERS: Record<FrameType, Reader> = {
  job_update: (f, stamps) => {
    if (text(f, "status") === "") return "status is missing";
    return {
      ...stamps,
      type: "job_update",
      status: text(f, "status"),
      message: textOrNull(f, "message"),
      outputs: outputsOf(f["result"]),
      error: textOrNull(f, "error"),
      error_code: textOrNull(f, "error_code"),
      duration: numberOrNull(f, "duration"),
      queue_position: numberOrNull(f, "queue_position"),
      issues: issuesOf(f["validation_issues"]),
    };
  },
  job_resumed: (f, stamps) => ({
    ...stamps,
    type: "job_resumed",
    status: text(f, "status", "unknown"),
    last_seq: numberOrNull(f, "last_seq") ?? 0,
    replay_count: numberOrNull(f, "replay_count") ?? 0,
    replay_incomplete: f["replay_incomplete"] === true,
  }),
  node_update: (f, stamps) => {
    if (text(f, "node_id") === "") return "node_id is missing";
    if (text(f, "status") === "") return "status is missing";
    return {
      ...stamps,
      ...nodeOf(f),
      type: "node_update",
      status: text(f, "status"),
      result: f["result"] ?? null,
      error: textOrNull(f, "error"),
      properties: record(f, "properties"),
    };
  },
  generation_complete: (f, stamps) => {
    if (text(f, "node_id") === "") return "node_id is missing";
    if (!isRecord(f["outputs"])) return "outputs is not an object";
    return {
      ...stamps,
      ...nodeOf(f),
      type: "generation_complete",
      index: numberOrNull(f, "index"),
      outputs: f["outputs"],
      properties: record(f, "properties"),
      generation_ids: texts(f, "generation_ids"),
    };
  },
  output_update: (f, stamps) => {
    if (text(f, "node_id") === "") return "node_id is missing";
    return {
      ...stamps,
      type: "output_update",
      node_id: text(f, "node_id"),
      node_name: text(f, "node_name"),
      output_name: text(f, "output_name"),
      output_type: text(f, "output_type", "any"),
      value: f["value"] ?? null,
      disposition: f["disposition"] === "replace" ? "replace" : "append",
    };
  },
  node_progress: (f, stamps) => {
    const progress = numberOrNull(f, "progress");
    const total = numberOrNull(f, "total");
    if (text(f, "node_id") === "") return "node_id is missing";
    if (progress === null || total === null) return "progress or total is not a number";
    return { ...stamps, type: "node_progress", node_id: text(f, "node_id"), progress, total };
  },
  edge_update: (f, stamps) => {
    if (text(f, "edge_id") === "") return "edge_id is missing";
    return {
      ...stamps,
      type: "edge_update",
      edge_id: text(f, "edge_id"),
      status: text(f, "status"),
      counter: numberOrNull(f, "counter"),
    };
  },
  prediction: (f, stamps) => {
    if (text(f, "id") === "") return "id is missing";
    const receipt = record(f, "receipt");
    return {
      ...stamps,
      type: "prediction",
      id: text(f, "id"),
      node_id: text(f, "node_id"),
      provider: text(f, "provider"),
      model: text(f, "model"),
      capability: text(f, "capability"),
      status: text(f, "status", "running"),
      asset_ids: texts(f, "asset_ids"),
      params: record(f, "params"),
      cost: exact(f, "cost"),
      currency: textOrNull(record(receipt, "cost"), "currency"),
      provider_request_id: textOrNull(receipt, "provider_request_id"),
      error: textOrNull(f, "error"),
      duration: numberOrNull(f, "duration"),
      started_at: textOrNull(f, "started_at"),
    };
  },
  log_update: (f, stamps) => lineOf("log_update", f, stamps),
  notification: (f, stamps) => lineOf("notification", f, stamps),
  chunk: (f, stamps) => ({
    ...stamps,
    type: "chunk",
    node_id: text(f, "node_id"),
    content: text(f, "content"),
    content_type: text(f, "content_type", "text"),
    done: f["done"] === true,
  }),
  provider_call_failed: (f, stamps) => ({
    ...stamps,
    type: "provider_call_failed",
    provider: text(f, "provider"),
    model: textOrNull(f, "model"),
    kind: text(f, "kind", "unknown"),
    message: text(f, "message"),
  }),
  error: (f, stamps) => ({ ...stamps, type: "error", message: text(f, "message") || text(f, "error") }),
};

const KNOWN: ReadonlyMap<string, Reader> = new Map(Object.entries(READERS));

/** Reads one message. Never throws: what it cannot use it says. */
export function decodeFrame(message: unknown): Decoded {
  if (!isRecord(message)) return { kind: "ignored", type: null };
  const type = message["type"];
  if (typeof type !== "string") return { kind: "ignored", type: null };
  const reader = KNOWN.get(type);
  if (reader === undefined) return { kind: "ignored", type };
  const read = reader(message, stampsOf(message));
  return typeof read === "string" ? { kind: "invalid", type, reason: read } : { kind: "frame", frame: read };
}

/** The job id and number of any message, known or not, so that a cursor can move past types nobody here knows. */
export function stampsOf(message: Fields): Stamps {
  const seq = numberOrNull(message, "job_seq");
  return {
    job_id: text(message, "job_id"),
    workflow_id: textOrNull(message, "workflow_id"),
    job_seq: seq !== null && Number.isInteger(seq) && seq > 0 ? seq : null,
  };
}

/** Whether a run with this wire status has ended for good. */
export function isTerminal(status: string): boolean {
  return (
    status === "completed" ||
    status === "failed" ||
    status === "cancelled" ||
    status === "error" ||
    status === "timed_out"
  );
}

function nodeOf(f: Fields): { node_id: string; node_name: string; node_type: string } {
  return { node_id: text(f, "node_id"), node_name: text(f, "node_name"), node_type: text(f, "node_type") };
}

function lineOf(type: "log_update" | "notification", f: Fields, stamps: Stamps): LogUpdate {
  return {
    ...stamps,
    type,
    node_id: text(f, "node_id"),
    node_name: text(f, "node_name"),
    content: text(f, "content") || text(f, "message"),
    severity: text(f, "severity", "info"),
  };
}

/** A money field: the exact text beside it when there is one, else the number written out. */
function exact(f: Fields, key: string): string | null {
  const stated = f[`${key}_exact`];
  if (typeof stated === "string" && stated !== "") return stated;
  const value = f[key];
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(9) : null;
}

function outputsOf(result: unknown): Record<string, unknown[]> | null {
  if (!isRecord(result) || !isRecord(result["outputs"])) return null;
  const lists: Record<string, unknown[]> = {};
  for (const [name, values] of Object.entries(result["outputs"])) {
    lists[name] = Array.isArray(values) ? values : [values];
  }
  return lists;
}

function issuesOf(value: unknown): Issue[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).map((one) => ({
    code: text(one, "code"),
    node_id: textOrNull(one, "node_id"),
    node_type: textOrNull(one, "node_type"),
    property: textOrNull(one, "property"),
    message: text(one, "message"),
  }));
}
