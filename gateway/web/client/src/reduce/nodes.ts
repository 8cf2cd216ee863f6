/** What the frames about a node change: what it is doing, and its variants. */

import type { GenerationComplete, NodeUpdate } from "../frames.ts";
import type { NodeStatus, RunState, Variant } from "../state.ts";
import type { Draft } from "./draft.ts";

/** What a node is doing. */
export function nodeUpdate(draft: Draft, frame: NodeUpdate): void {
  if (draft.state.status === "cancelled") return;
  const before = draft.state.nodes.get(frame.node_id);
  // A warning is told by a log line; it moves nothing.
  const status = nodeStatusOf(frame.status) ?? before?.status ?? "running";
  draft.nodes().set(frame.node_id, {
    id: frame.node_id,
    name: frame.node_name || before?.name || frame.node_id,
    type: frame.node_type || before?.type || "",
    status,
    error: frame.error ?? (status === "failed" ? (before?.error ?? "failed") : null),
    properties: { ...before?.properties, ...frame.properties },
  });
  const newest = newestOf(draft.state, frame.node_id);
  switch (status) {
    case "running":
      if (newest === null) put(draft, frame.node_id, 0, { status: "running" });
      return;
    case "failed":
      // An error has no index: it settles the newest slot, which keeps what it has already got.
      put(draft, frame.node_id, newest?.index ?? 0, { status: "error", error: frame.error });
      return;
    case "completed":
      // The artifacts came with their own frames. A placeholder that none of them filled is a node that made nothing.
      if (newest?.status === "running") draft.variants(frame.node_id).delete(newest.index);
      return;
    case "waiting":
    case "suspended":
    case "stopped":
      return;
    default:
      return unreachable(status);
  }
}

/** A node has made something. */
export function generationComplete(draft: Draft, frame: GenerationComplete): void {
  const known = draft.state.nodes.get(frame.node_id);
  if (known === undefined) {
    draft.nodes().set(frame.node_id, {
      id: frame.node_id,
      name: frame.node_name || frame.node_id,
      type: frame.node_type,
      status: "running",
      error: null,
      properties: {},
    });
  }
  put(draft, frame.node_id, frame.index ?? 0, {
    status: "completed",
    outputs: frame.outputs,
    properties: frame.properties,
    generationIds: frame.generation_ids,
    error: null,
  });
  if (draft.state.display.has(frame.node_id)) draft.display().delete(frame.node_id);
}

function put(draft: Draft, nodeId: string, index: number, patch: Partial<Omit<Variant, "nodeId" | "index">>): void {
  const slots = draft.variants(nodeId);
  const before: Variant = slots.get(index) ?? {
    nodeId,
    index,
    status: "running",
    outputs: {},
    properties: {},
    generationIds: [],
    error: null,
  };
  slots.set(index, { ...before, ...patch });
}

function newestOf(state: RunState, nodeId: string): Variant | null {
  return [...(state.variants.get(nodeId)?.values() ?? [])].at(-1) ?? null;
}

function nodeStatusOf(status: string): NodeStatus | null {
  switch (status) {
    case "pending":
      return "waiting";
    case "booting":
    case "starting":
    case "running":
      return "running";
    case "completed":
      return "completed";
    case "error":
      return "failed";
    case "suspended":
      return "suspended";
    default:
      return null;
  }
}

function unreachable(status: never): void {
  void status;
}
