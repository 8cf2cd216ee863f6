import { describe, expect, it } from "vitest";
import * as money from "../src/money.ts";
import { leavesOf, streamedText } from "../src/values.ts";

const url = (id: string): string => `/assets/${id}`;

describe("leavesOf", () => {
  it("finds_media_by_asset_id_before_any_address", () => {
    const image = { type: "image", uri: "data:image/png;base64,AA", asset_id: "A1" };
    expect(leavesOf({ output: image }, url)).toMatchObject([{ kind: "image", url: "/assets/A1", assetId: "A1" }]);
    expect(leavesOf({ output: { type: "audio", uri: "asset://B2.wav" } }, url)).toMatchObject([{ kind: "audio", url: "/assets/B2" }]);
  });

  it("takes_lists_of_media_apart_and_leaves_other_lists_whole", () => {
    const list = [{ type: "image", asset_id: "A" }, { type: "image", asset_id: "B" }];
    expect(leavesOf({ output: list, numbers: [1, 2] }, url)).toMatchObject([
      { kind: "image", at: { handle: "output", element: 0 } },
      { kind: "image", at: { handle: "output", element: 1 } },
      { kind: "json", at: { handle: "numbers", element: null }, value: [1, 2] },
    ]);
  });

  it("never_gives_out_an_address_that_could_run", () => {
    for (const uri of ["javascript:alert(1)", "data:text/html;base64,AA", "//evil.example/x", "file:///etc/passwd", "memory://1"]) {
      expect(leavesOf({ output: { type: "image", uri } }, url)).toMatchObject([{ kind: "image", url: null }]);
    }
  });

  it("text_is_text_and_nothing_is_nothing", () => {
    expect(leavesOf({ text: "hello", empty: "", none: null, count: 0 }, url)).toMatchObject([
      { kind: "text", text: "hello" },
      { kind: "json", value: 0 },
    ]);
    const inline = { type: "text", uri: `data:text/plain;base64,${btoa("hi")}` };
    expect(leavesOf({ output: inline }, url)).toMatchObject([{ kind: "text", text: "hi" }]);
  });
});

describe("pieces of a stream", () => {
  it("are_left_out_beside_something_whole_and_shown_alone", () => {
    const chunk = { type: "chunk", content_type: "text", content: "end", done: true };
    expect(leavesOf({ chunk, text: "the whole" }, url)).toMatchObject([{ kind: "text", text: "the whole" }]);
    expect(leavesOf({ chunk, text: "" }, url)).toMatchObject([{ kind: "text", text: "end", at: { handle: "chunk" } }]);
    expect(leavesOf({ chunk: { ...chunk, content: "" } }, url)).toEqual([]);
  });
});

describe("streamedText", () => {
  it("joins_pieces_and_knows_what_is_not_text", () => {
    expect(streamedText(["a", { type: "chunk", content_type: "text", content: "b" }])).toBe("ab");
    expect(streamedText({ type: "chunk", content_type: "audio", content: "AAAA" })).toBeNull();
    expect(streamedText([])).toBeNull();
  });
});

describe("money", () => {
  it("adds_exactly", () => {
    expect(["0.1", "0.2", "0.000000001"].reduce(money.add, "0")).toBe("0.300000001");
    expect(Array.from({ length: 6 }, () => "0.040000000").reduce(money.add, "0")).toBe("0.24");
    expect(money.subtract("0.02", "0.05")).toBe("-0.03");
    expect(money.add("99999999999999.99", "0.01")).toBe("100000000000000.00");
  });

  it("writes_two_decimals_at_least", () => {
    expect(money.shortest("0.040000000")).toBe("0.04");
    expect(money.shortest("15")).toBe("15.00");
    expect(money.shortest("free")).toBeNull();
  });
});
