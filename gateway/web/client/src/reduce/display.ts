/** What a node shows while it works. */

import type { Chunk, OutputUpdate } from "../frames.ts";
import { isRecord } from "../read.ts";
import type { Draft } from "./draft.ts";

const MAX_DISPLAY_PIECES = 1_024;

/** A value, or a piece of one, that a node gives before its artifact is there. */
export function outputUpdate(draft: Draft, frame: OutputUpdate): void {
  const before = draft.state.display.get(frame.node_id);
  const value = displayable(frame.value, frame.output_type);
  draft.display().set(frame.node_id, {
    value: frame.disposition === "replace" || before === undefined ? value : appended(before.value, value),
    outputType: frame.output_type,
  });
}

/** A piece of text that a node is writing. */
export function chunk(draft: Draft, frame: Chunk): void {
  if (frame.node_id === "" || frame.content_type !== "text" || frame.content === "") return;
  const before = draft.state.display.get(frame.node_id);
  draft.display().set(frame.node_id, {
    value: before === undefined ? frame.content : appended(before.value, frame.content),
    outputType: "str",
  });
}

function appended(before: unknown, value: unknown): unknown[] {
  const pieces = Array.isArray(before) ? [...before, value] : [before, value];
  return pieces.length > MAX_DISPLAY_PIECES && !pieces.every((one) => typeof one === "string")
    ? pieces.slice(-MAX_DISPLAY_PIECES)
    : pieces;
}

const MEDIA_TYPES: ReadonlySet<string> = new Set(["image", "audio", "video", "html", "document", "model_3d"]);

function displayable(value: unknown, outputType: string): unknown {
  if (!MEDIA_TYPES.has(outputType)) return value;
  if (!isRecord(value)) return { type: outputType, data: value };
  return typeof value["type"] === "string" ? value : { type: outputType, ...value };
}
