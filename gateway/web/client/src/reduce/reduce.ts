/**
 * From frames to the state of a run. `reduce` is pure: the same frames give the same state, in one batch or one by one,
 * and a frame that was applied before changes nothing.
 */

import type { Frame } from "../frames.ts";
import type { LogLine, RunState } from "../state.ts";
import { prediction } from "./calls.ts";
import { chunk, outputUpdate } from "./display.ts";
import { Draft } from "./draft.ts";
import { jobUpdate } from "./job.ts";
import { generationComplete, nodeUpdate } from "./nodes.ts";

/** The state after these frames, in their order; the same object when none of them said anything. */
export function reduce(state: RunState, frames: readonly Frame[]): RunState {
  const draft = new Draft(state);
  for (const frame of frames) apply(draft, frame);
  return draft.result();
}

function apply(draft: Draft, frame: Frame): void {
  if (frame.job_id !== "" && frame.job_id !== draft.state.jobId) return;
  if (frame.job_seq !== null) {
    if (frame.job_seq <= draft.state.lastSeq) return;
    draft.set({ lastSeq: frame.job_seq });
  }
  if (frame.workflow_id !== null && draft.state.workflowId === null) draft.set({ workflowId: frame.workflow_id });
  switch (frame.type) {
    case "job_update":
      return jobUpdate(draft, frame);
    case "job_resumed":
      if (frame.replay_incomplete) draft.set({ incomplete: true });
      return;
    case "node_update":
      return nodeUpdate(draft, frame);
    case "generation_complete":
      return generationComplete(draft, frame);
    case "output_update":
      return outputUpdate(draft, frame);
    case "node_progress":
      if (draft.state.status === "cancelled") return;
      draft.progress().set(frame.node_id, { done: frame.progress, total: frame.total });
      return;
    case "edge_update":
      if (draft.state.status === "cancelled") return;
      draft.edges().set(frame.edge_id, frame);
      return;
    case "prediction":
      return prediction(draft, frame);
    case "log_update":
    case "notification":
      return draft.log({
        seq: frame.job_seq,
        nodeId: frame.node_id,
        nodeName: frame.node_name,
        severity: severityOf(frame.severity),
        content: frame.content,
      });
    case "chunk":
      return chunk(draft, frame);
    case "provider_call_failed":
      return draft.log({
        seq: frame.job_seq,
        nodeId: "",
        nodeName: frame.model === null ? frame.provider : `${frame.provider}/${frame.model}`,
        severity: "warning",
        content: frame.message,
      });
    case "error":
      return draft.log({ seq: frame.job_seq, nodeId: "", nodeName: "", severity: "error", content: frame.message });
    default:
      return unreachable(frame);
  }
}

function severityOf(severity: string): LogLine["severity"] {
  return severity === "error" || severity === "warning" ? severity : "info";
}

function unreachable(frame: never): void {
  void frame;
}
