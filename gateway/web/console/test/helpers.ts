/** From frames to a state, and what a page knows besides. */

import { type Frame, type RunState, decodeFrame, emptyRun, reduce } from "@atelier/client";
import type { Wire } from "../../client/test/recorded.ts";
import type { Known } from "../src/state/tiles.ts";

export function play(frames: readonly Wire[]): RunState {
  const read: Frame[] = frames.flatMap((one) => {
    const decoded = decodeFrame(one);
    return decoded.kind === "frame" ? [decoded.frame] : [];
  });
  return reduce(emptyRun("J"), read);
}

export function knowing(more: Partial<Known> = {}): Known {
  return { graph: undefined, generations: [], assets: [], assetUrl: (id) => `/assets/${id}`, ...more };
}
