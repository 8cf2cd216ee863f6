import type { Graph } from "@atelier/client";
import { describe, expect, it } from "vitest";
import { FAILS_AT_3, SIX, type Wire, call, commit, image, node, stamped } from "../../client/test/recorded.ts";
import { contentsOf, placesOf, resultsOf } from "../src/state/places.ts";
import { groupsOf } from "../src/state/tiles.ts";
import { knowing, play } from "./helpers.ts";

function chain(...types: readonly [id: string, type: string][]): Graph {
  const nodes = types.map(([id, type]) => ({ id, type }));
  const edges = nodes.slice(1).map((one, at) => ({ source: nodes[at]?.id ?? "", sourceHandle: "output", target: one.id, targetHandle: "value" }));
  return { nodes, edges };
}

function places(frames: readonly Wire[], graph?: Graph): { lead: string[]; rest: string[] } {
  const state = play(frames);
  const { lead, rest } = placesOf(groupsOf(state, knowing({ graph })), state, graph);
  return { lead: lead.map((one) => one.node.id), rest: rest.map((one) => one.node.id) };
}

function made(id: string, type: string, value: unknown, index = 0): Wire {
  return { type: "generation_complete", node_id: id, node_name: type, node_type: type, index, outputs: { output: value }, generation_ids: [] };
}

const FORMAT = "nodetool.text.FormatText";
const AGENT = "nodetool.agents.Agent";
const OUTPUT = "nodetool.output.Output";

describe("placesOf", () => {
  it("media_come_first_then_the_text_of_models_and_the_rest_is_put_away", () => {
    const graph = chain(["f", FORMAT], ["a", AGENT], ["g", "image"], ["o", OUTPUT]);
    const frames = stamped([made("f", FORMAT, "asked"), made("a", AGENT, "told"), node("running"), commit(0), made("o", OUTPUT, image(0))]);
    expect(places(frames, graph)).toEqual({ lead: ["g", "a"], rest: ["f", "o"] });
  });

  it("media_that_only_pass_through_are_not_shown_twice", () => {
    const graph = chain(["g", "image"], ["r", "nodetool.control.Reroute"], ["o", OUTPUT]);
    const frames = stamped([node("running"), commit(0), made("r", "nodetool.control.Reroute", image(0)), made("o", OUTPUT, image(0))]);
    expect(places(frames, graph)).toEqual({ lead: ["g"], rest: ["r", "o"] });
    // Where nothing before the output holds them, the output is where they are seen.
    expect(places(stamped([made("o", OUTPUT, image(0))]), graph)).toMatchObject({ lead: ["o"] });
  });

  it("what_is_being_made_stands_where_it_will_stand", () => {
    const graph = chain(["a", AGENT], ["g", "image"]);
    const frames = stamped([made("a", AGENT, "told"), node("running"), call(0, "running")]);
    expect(places(frames, graph).lead).toEqual(["g", "a"]);
  });

  it("an_error_is_never_put_away", () => {
    expect(places(FAILS_AT_3).lead).toEqual(["g"]);
    const failed = { type: "node_update", node_id: "f", node_name: FORMAT, node_type: FORMAT, status: "error", error: "no template" };
    expect(places(stamped([failed]))).toEqual({ lead: ["f"], rest: [] });
  });

  it("text_that_is_being_written_is_seen_until_the_node_is_done", () => {
    const type = "custom.Writer";
    const running = { type: "node_update", node_id: "w", node_name: type, node_type: type, status: "running" };
    const piece = { type: "chunk", node_id: "w", content_type: "text", content: "Once", done: false };
    expect(places(stamped([running, piece]))).toEqual({ lead: ["w"], rest: [] });
    expect(places(stamped([running, piece, made("w", type, "Once"), { ...running, status: "completed" }]))).toEqual({ lead: [], rest: ["w"] });
  });

  it("results_are_counted_by_commit_and_named_after_what_they_are", () => {
    const [six] = groupsOf(play(SIX), knowing());
    const [pair] = groupsOf(play(stamped([{ ...made("e", "x.Each", 1), outputs: { output: "a", index: 0 } }])), knowing());
    if (six === undefined || pair === undefined) throw new Error("no groups");
    expect([contentsOf(six), resultsOf(six)]).toEqual([{ n: 6, noun: "image" }, 6]);
    expect([pair.tiles.length, contentsOf(pair)]).toEqual([2, { n: 1, noun: "result" }]);
  });
});
