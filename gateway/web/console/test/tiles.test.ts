import { type Asset, type Generation, emptyRun } from "@atelier/client";
import { describe, expect, it } from "vitest";
import { CANCELLED, FAILS_AT_3, SIX, node } from "../../client/test/recorded.ts";
import { groupsOf } from "../src/state/tiles.ts";
import { knowing, play } from "./helpers.ts";

function asset(id: string, more: Partial<Asset>): Asset {
  return {
    id,
    name: id,
    content_type: "image/png",
    size_bytes: 1,
    digest: "",
    uri: `asset://${id}.png`,
    url: "",
    path: null,
    job_id: "J",
    node_id: "g",
    workflow_id: null,
    index: null,
    handle: "output",
    element: null,
    generation_ids: [],
    metadata: {},
    created_at: "2026-09-03T12:00:00.000Z",
    ...more,
  };
}

function row(id: string, cost: string | null): Generation {
  return {
    id,
    status: "completed",
    provider: "sketch",
    model: "sketch-image",
    capability: "text_to_image",
    cost,
    currency: "USD",
    estimated_cost: null,
    billing_unit: null,
    quantity: null,
    unit_price: null,
    price_source: null,
    asset_ids: [],
    job_id: "J",
    node_id: "g",
    workflow_id: null,
    origin: {},
    params: { prompt: "from the ledger", seed: 7 },
    provider_request_id: null,
    attempts: [],
    reconcile: { state: "none", attempts: 0, next_at: null, reconciled_at: null, error: null },
    facets: { submission: null, provider: null, output: null },
    created_at: "2026-09-03T12:00:00.000Z",
    started_at: null,
    completed_at: null,
    duration_ms: 1_000,
    error: null,
    error_code: null,
    background: false,
    version: 1,
    metadata: {},
    input_tokens: null,
    output_tokens: null,
  };
}

describe("groupsOf", () => {
  it("a_variant_shows_its_prompt_and_its_price", () => {
    const tiles = groupsOf(play(SIX), knowing())[0]?.tiles ?? [];
    expect(tiles.map((one) => [one.index, one.state, one.prompt, one.call?.cost])).toEqual(
      [0, 1, 2, 3, 4, 5].map((k) => [k, "ready", `lantern ${k}`, "0.040000000"]),
    );
  });

  it("a_call_without_an_artifact_yet_is_a_tile_that_is_being_made", () => {
    // running, node, call 0 (2), commit 0, call 1 running
    const tiles = groupsOf(play(SIX.slice(0, 6)), knowing())[0]?.tiles ?? [];
    expect(tiles.map((one) => one.state)).toEqual(["ready", "pending"]);
    // The provider is done, the artifact is not there yet: the tile must not blink away.
    const between = groupsOf(play(SIX.slice(0, 7)), knowing())[0]?.tiles ?? [];
    expect(between.map((one) => one.state)).toEqual(["ready", "pending"]);
  });

  it("a_failed_call_is_told_where_it_happened", () => {
    const tiles = groupsOf(play(FAILS_AT_3), knowing())[0]?.tiles ?? [];
    expect(tiles.map((one) => one.state)).toEqual(["ready", "ready", "ready", "failed"]);
    expect(tiles.at(-1)).toMatchObject({ error: "content refused", prompt: "lantern 3" });
  });

  it("a_cancelled_call_is_shown_as_one", () => {
    const tiles = groupsOf(play(CANCELLED), knowing())[0]?.tiles ?? [];
    expect(tiles.map((one) => one.state)).toEqual(["ready", "ready", "cancelled"]);
  });

  it("a_node_whose_call_was_cancelled_did_not_complete", () => {
    const frames = [...CANCELLED.slice(0, -1), { ...node("completed"), job_id: "J" }, { type: "job_update", status: "cancelled", job_id: "J" }];
    expect(groupsOf(play(frames), knowing())[0]?.node.status).toBe("stopped");
  });

  it("a_name_that_is_only_the_type_becomes_a_title_and_ids_tell_equal_titles_apart", () => {
    const graph = {
      nodes: [
        { id: "a", type: "nodetool.text.FormatText", name: "nodetool.text.FormatText" },
        { id: "b", type: "nodetool.text.FormatText" },
        { id: "c", type: "nodetool.text.FormatText", name: "Greeting" },
        { id: "d", type: "nodetool.control.ForEach" },
      ],
      edges: [],
    };
    const titles = groupsOf(emptyRun("J"), knowing({ graph })).map((one) => one.title);
    expect(titles).toEqual(["Format Text · a", "Format Text · b", "Greeting", "For Each"]);
  });

  it("the_ledger_knows_better_about_charges", () => {
    const tiles = groupsOf(play(SIX), knowing({ generations: [row("P2", "0.05")] }))[0]?.tiles ?? [];
    expect(tiles[2]).toMatchObject({ prompt: "from the ledger", seed: "7", call: { cost: "0.05" } });
  });

  it("the_graph_gives_the_order_and_the_nodes_that_have_not_begun", () => {
    const graph = {
      nodes: [
        { id: "c", type: "nodetool.constant.String" },
        { id: "later", type: "nodetool.text.Count" },
        { id: "g", type: "image" },
      ],
      edges: [],
    };
    const groups = groupsOf(play(SIX.slice(0, 3)), knowing({ graph }));
    expect(groups.map((one) => [one.node.id, one.title, one.node.status])).toEqual([
      ["later", "Count", "waiting"],
      ["g", "Draw", "running"],
    ]);
  });

  it("a_run_whose_frames_are_gone_is_shown_from_its_assets", () => {
    const ended = play([{ type: "job_update", status: "completed", job_id: "J" }]);
    const assets = [asset("B", { index: 1, generation_ids: ["P1"] }), asset("A", { index: 0, metadata: { prompt: "first" } })];
    const tiles = groupsOf(ended, knowing({ assets, generations: [row("P1", "0.04")] }))[0]?.tiles ?? [];
    expect(tiles.map((one) => [one.assetId, one.index, one.prompt])).toEqual([
      ["A", 0, "first"],
      ["B", 1, "from the ledger"],
    ]);
  });
});
