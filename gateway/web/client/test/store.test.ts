import { describe, expect, it } from "vitest";
import { decodeFrame } from "../src/frames.ts";
import { reduce } from "../src/reduce/reduce.ts";
import { type RunState, emptyRun, predictionsOf, variantsOf } from "../src/state.ts";
import { RunStore } from "../src/store.ts";
import { CANCELLED, FAILS_AT_3, SIMPLE, SIX, type Wire, call, commit, decoded, image, node, stamped } from "./recorded.ts";

function play(frames: readonly Wire[]): RunState {
  return reduce(emptyRun("J"), decoded(frames));
}

function bare(frames: readonly Wire[]): RunState {
  return play(stamped(frames));
}

function display(handle: unknown, disposition?: string, more: Wire = {}): Wire {
  return {
    type: "output_update",
    node_id: "g",
    node_name: "Draw",
    output_name: "output",
    output_type: "str",
    value: handle,
    metadata: {},
    ...(disposition === undefined ? {} : { disposition }),
    ...more,
  };
}

describe("a recorded run", () => {
  it("w_070_the_simple_run_ends_with_its_picture_and_its_price", () => {
    const state = play(SIMPLE);
    expect(state.status).toBe("completed");
    expect(state.lastSeq).toBe(14);
    expect(state.duration).toBe(2.1);
    expect([...state.nodes.values()].map((one) => [one.id, one.name, one.status])).toEqual([
      ["g", "Draw", "completed"],
      ["o", "picture", "completed"],
    ]);
    expect(variantsOf(state, "g").map((one) => [one.index, one.status, one.generationIds])).toEqual([[0, "completed", ["P1"]]]);
    expect(state.outputs.get("picture")).toHaveLength(1);
    expect(state.display.size).toBe(0);
    expect([...state.cost.amounts]).toEqual([["USD", "0.02"]]);
    expect(state.cost).toMatchObject({ unpriced: 0, running: 0 });
  });

  it("w_071_six_prompts_make_six_variants", () => {
    const state = play(SIX);
    const variants = variantsOf(state, "g");
    expect(variants.map((one) => one.index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(variants.every((one) => one.status === "completed")).toBe(true);
    expect(variants.map((one) => one.outputs)).toEqual([0, 1, 2, 3, 4, 5].map((k) => ({ output: image(k) })));
    expect([...state.cost.amounts]).toEqual([["USD", "0.24"]]);
    expect(predictionsOf(state, "g")).toHaveLength(6);
  });

  it("w_075_a_failure_at_item_3_keeps_the_three_before_it", () => {
    const state = play(FAILS_AT_3);
    expect(state).toMatchObject({ status: "failed", error: "content refused" });
    expect(state.nodes.get("g")).toMatchObject({ status: "failed", error: "content refused" });
    const variants = variantsOf(state, "g");
    expect(variants.map((one) => one.index)).toEqual([0, 1, 2]);
    expect(variants.map((one) => one.outputs)).toEqual([0, 1, 2].map((k) => ({ output: image(k) })));
    expect(state.predictions.get("P3")).toMatchObject({ status: "failed", error: "content refused" });
    expect([...state.cost.amounts]).toEqual([["USD", "0.12"]]);
    expect(state.cost.unpriced).toBe(1);
  });

  it("w_168_an_error_marks_the_newest_variant_and_leaves_it_its_outputs", () => {
    const newest = variantsOf(play(FAILS_AT_3), "g").at(-1);
    expect(newest).toMatchObject({ index: 2, status: "error", error: "content refused", outputs: { output: image(2) } });
  });

  it("w_180_a_cancelled_run_keeps_what_was_paid_for_and_takes_nothing_after_its_end", () => {
    const state = play(CANCELLED);
    expect(state.status).toBe("cancelled");
    expect(variantsOf(state, "g").map((one) => one.index)).toEqual([0, 1]);
    expect(state.nodes.get("g")?.status).toBe("stopped");
    const late = stamped([node("running"), { type: "edge_update", edge_id: "e", status: "active" }]).map((frame, at) => ({
      ...frame,
      job_seq: 12 + at,
    }));
    const after = reduce(state, decoded(late));
    expect(after.nodes.get("g")?.status).toBe("stopped");
    expect(after.edges.size).toBe(0);
  });
});

describe("batches and replays", () => {
  it.each([
    ["simple", SIMPLE],
    ["six", SIX],
    ["failure", FAILS_AT_3],
    ["cancel", CANCELLED],
  ])("one by one and all at once give the same state: %s", (_name, frames) => {
    const single = decoded(frames).reduce((state, frame) => reduce(state, [frame]), emptyRun("J"));
    expect(single).toEqual(play(frames));
  });

  it("w_188_a_replay_from_the_beginning_changes_nothing", () => {
    const state = play(SIX);
    expect(reduce(state, decoded(SIX))).toBe(state);
  });

  it("never_changes_a_state_that_was_given_out", () => {
    const frames = decoded(SIX);
    const half = reduce(emptyRun("J"), frames.slice(0, 8));
    const copy = structuredClone(half);
    reduce(half, frames.slice(8));
    expect(half).toEqual(copy);
  });

  it("frames_of_another_run_write_nothing", () => {
    const state = emptyRun("K");
    expect(reduce(state, decoded(SIX))).toBe(state);
  });

  it("frames_without_a_number_are_always_applied", () => {
    const unnumbered = { ...commit(4, { replayed: true }), job_id: "J", workflow_id: "W" };
    const state = reduce(emptyRun("J"), decoded([unnumbered]));
    expect(variantsOf(state, "g").map((one) => one.index)).toEqual([4]);
  });
});

describe("variants", () => {
  it("w_161_a_placeholder_becomes_the_first_variant", () => {
    const running = bare([node("running")]);
    expect(variantsOf(running, "g")).toMatchObject([{ index: 0, status: "running" }]);
    expect(variantsOf(bare([node("running"), commit(0)]), "g")).toMatchObject([{ index: 0, status: "completed" }]);
  });

  it("w_162_a_node_that_fails_before_any_artifact_leaves_no_spinner", () => {
    const state = bare([node("running"), node("error", { error: "boom" })]);
    expect(variantsOf(state, "g")).toMatchObject([{ index: 0, status: "error", error: "boom", outputs: {} }]);
  });

  it("w_163_a_gap_is_not_filled", () => {
    expect(variantsOf(bare([commit(2)]), "g").map((one) => one.index)).toEqual([2]);
  });

  it("w_164_the_same_index_replaces", () => {
    const state = bare([commit(1), commit(1, { outputs: { output: image(9) } })]);
    expect(variantsOf(state, "g").map((one) => one.outputs)).toEqual([{ output: image(9) }]);
  });

  it("w_165_the_end_of_a_node_writes_no_variant", () => {
    const state = bare([node("running"), commit(0), commit(1), node("completed", { result: { output: image(1) } })]);
    expect(variantsOf(state, "g")).toHaveLength(2);
  });

  it("w_166_a_node_that_made_nothing_loses_its_placeholder", () => {
    expect(variantsOf(bare([node("running"), node("completed", { result: {} })]), "g")).toEqual([]);
  });

  it("a_second_running_frame_adds_no_placeholder", () => {
    expect(variantsOf(bare([node("running"), commit(0), node("running")]), "g")).toHaveLength(1);
  });
});

describe("what is shown meanwhile", () => {
  it("w_171_pieces_are_collected_and_append_is_the_default", () => {
    const state = bare([display("a"), display("b"), display("c", "append")]);
    expect(state.display.get("g")?.value).toEqual(["a", "b", "c"]);
  });

  it("w_172_replace_keeps_the_last_whole_value", () => {
    const state = bare([display({ type: "image", uri: "1" }, "replace"), display({ type: "image", uri: "2" }, "replace")]);
    expect(state.display.get("g")?.value).toEqual({ type: "image", uri: "2" });
  });

  it("w_173_replace_then_append", () => {
    const state = bare([display("ab", "append"), display("XY", "replace"), display("Z", "append")]);
    expect(state.display.get("g")?.value).toEqual(["XY", "Z"]);
  });

  it("w_174_the_artifact_clears_it", () => {
    const state = bare([display("tok", "append"), commit(0)]);
    expect(state.display.has("g")).toBe(false);
  });

  it("w_176_media_pieces_are_capped_at_the_newest", () => {
    const pieces = Array.from({ length: 1_100 }, (_, k) => display({ type: "chunk", content_type: "audio", n: k }));
    const kept = bare(pieces).display.get("g")?.value;
    expect(Array.isArray(kept) && kept.length).toBe(1_024);
    expect(Array.isArray(kept) && kept.at(-1)).toMatchObject({ n: 1_099 });
  });

  it("w_177_bare_media_gets_its_type", () => {
    const typed = bare([display({ uri: "u" }, "replace", { output_type: "image" })]);
    expect(typed.display.get("g")?.value).toEqual({ type: "image", uri: "u" });
    const text = bare([display("u", "replace", { output_type: "image" })]);
    expect(text.display.get("g")?.value).toEqual({ type: "image", data: "u" });
  });

  it("tokens_join_the_text", () => {
    const token = (content: string): Wire => ({ type: "chunk", node_id: "g", content, content_type: "text", done: false });
    expect(bare([token("Once"), token(" upon")]).display.get("g")?.value).toEqual(["Once", " upon"]);
  });
});

describe("the run", () => {
  it("w_178_a_queue_position_is_forgotten_when_it_starts", () => {
    const queued = [{ type: "job_update", status: "queued", queue_position: 2, message: "Queued (#2)" }];
    expect(bare(queued)).toMatchObject({ status: "queued", queuePosition: 2 });
    expect(bare([...queued, { type: "job_update", status: "running" }])).toMatchObject({ status: "running", queuePosition: null });
  });

  it("a_refused_graph_names_the_property", () => {
    const issue = { node_id: "g", property: "prompt", message: "is required" };
    const state = bare([{ type: "job_update", status: "failed", error: "invalid", error_code: "INVALID_INPUT", validation_issues: [issue] }]);
    expect(state).toMatchObject({ status: "failed", errorCode: "INVALID_INPUT", issues: [issue] });
  });

  it("w_085_an_unpriced_call_is_counted_and_never_taken_for_nothing", () => {
    const state = bare([call(0, "running"), call(0, "completed", { cost: null, cost_exact: null, receipt: null })]);
    expect(state.cost.amounts.size).toBe(0);
    expect(state.cost).toMatchObject({ unpriced: 1, running: 0 });
    expect(bare([call(0, "running")]).cost).toMatchObject({ unpriced: 0, running: 1 });
  });

  it("a_cost_that_is_stated_again_is_counted_once", () => {
    const state = bare([call(0, "completed"), call(0, "completed", { cost: 0.05, cost_exact: "0.050000000" })]);
    expect([...state.cost.amounts]).toEqual([["USD", "0.05"]]);
  });

  it("w_189_missing_frames_are_remembered", () => {
    const resumed = { type: "job_resumed", job_id: "J", status: "running", last_seq: 9, replay_count: 0, replay_incomplete: true };
    expect(reduce(emptyRun("J"), decoded([resumed])).incomplete).toBe(true);
  });
});

describe("reading frames", () => {
  it("w_089_unknown_types_and_acknowledgements_are_ignored", () => {
    expect(decodeFrame({ type: "x_demo", job_id: "J", job_seq: 3 })).toEqual({ kind: "ignored", type: "x_demo" });
    expect(decodeFrame({ message: "Job started" })).toEqual({ kind: "ignored", type: null });
    expect(decodeFrame("text")).toEqual({ kind: "ignored", type: null });
    expect(decodeFrame({ type: "constructor" })).toEqual({ kind: "ignored", type: "constructor" });
  });

  it("a_known_type_without_its_fields_is_reported", () => {
    expect(decodeFrame({ type: "generation_complete", node_id: "g" })).toMatchObject({ kind: "invalid" });
    expect(decodeFrame({ type: "node_progress", node_id: "g", progress: "half" })).toMatchObject({ kind: "invalid" });
  });
});

describe("RunStore", () => {
  it("tells_its_watchers_once_per_batch_and_survives_a_bad_one", () => {
    const turns: (() => void)[] = [];
    const store = new RunStore("J", (flush) => turns.push(flush));
    const seen: number[] = [];
    store.subscribe((state) => seen.push(state.lastSeq));
    for (const frame of decoded(SIX)) store.push(frame);
    expect(turns).toHaveLength(1);
    expect(seen).toEqual([]);
    turns.forEach((flush) => flush());
    expect(seen).toEqual([SIX.length]);
  });
});
