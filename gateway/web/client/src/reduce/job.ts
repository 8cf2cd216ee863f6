/** What the frames about the run as a whole change. */

import { type JobUpdate, isTerminal } from "../frames.ts";
import type { RunStatus } from "../state.ts";
import type { Draft } from "./draft.ts";

/** The run's status, its end and its outputs. */
export function jobUpdate(draft: Draft, frame: JobUpdate): void {
  const status = runStatusOf(frame.status);
  if (status === null) return;
  draft.set({
    status,
    message: frame.message,
    queuePosition: status === "queued" ? frame.queue_position : null,
    duration: frame.duration ?? draft.state.duration,
  });
  if (frame.error !== null) draft.set({ error: frame.error });
  if (frame.error_code !== null) draft.set({ errorCode: frame.error_code });
  if (frame.issues.length > 0) draft.set({ issues: frame.issues });
  if (frame.outputs !== null) draft.set({ outputs: new Map(Object.entries(frame.outputs)) });
  if (isTerminal(frame.status)) settle(draft);
}

/** Nothing works any more once the run has ended: no spinner may stay behind. */
function settle(draft: Draft): void {
  for (const node of draft.state.nodes.values()) {
    if (node.status === "running" || node.status === "waiting") draft.nodes().set(node.id, { ...node, status: "stopped" });
  }
  for (const [nodeId, slots] of draft.state.variants) {
    for (const variant of slots.values()) {
      if (variant.status === "running") draft.variants(nodeId).delete(variant.index);
    }
  }
}

function runStatusOf(status: string): RunStatus | null {
  switch (status) {
    case "queued":
    case "running":
    case "completed":
    case "failed":
    case "cancelled":
    case "suspended":
      return status;
    case "pending":
      return "queued";
    case "error":
    case "timed_out":
      return "failed";
    case "paused":
      return "suspended";
    default:
      return null;
  }
}
