import { describe, expect, it } from "vitest";
import { ago, count, duration, price, size, tookOf, typeName } from "../src/state/format.ts";

describe("format", () => {
  it("amounts_keep_every_digit_that_was_stated", () => {
    expect(price("0.24", "USD")).toBe("$0.24");
    expect(price("0.000110000", "USD")).toBe("$0.00011");
    expect(price("1234567.5", "EUR")).toBe("€1\u202f234\u202f567.50");
    expect(price("3", "CHF")).toBe("3.00 CHF");
  });

  it("durations_have_one_unit_or_two", () => {
    expect([340, 2_140, 59_949, 59_951, 187_000, 7_500_000].map(duration)).toEqual([
      "340 ms",
      "2.1 s",
      "59.9 s",
      "1 m 00 s",
      "3 m 07 s",
      "2 h 05 m",
    ]);
  });

  it("a_call_that_was_ended_from_outside_took_the_time_until_then", () => {
    const span = { started_at: "2026-09-03T12:00:00.000Z", completed_at: "2026-09-03T12:00:01.500Z" };
    expect(tookOf({ ...span, duration_ms: null })).toBe(1_500);
    expect(tookOf({ ...span, duration_ms: 1_200 })).toBe(1_200);
    expect(tookOf({ ...span, completed_at: null, duration_ms: null })).toBeNull();
  });

  it("moments_sizes_and_names", () => {
    const now = Date.parse("2026-09-03T12:00:00.000Z");
    expect(ago("2026-09-03T11:58:30.000Z", now)).toBe("1 min ago");
    expect(ago("2026-09-03T12:00:03.000Z", now)).toBe("just now");
    expect([812, 14_400, 2_300_000].map(size)).toEqual(["812 B", "14 kB", "2.3 MB"]);
    expect(count(1, "image")).toBe("1 image");
    expect(typeName("nodetool.image.TextToImage")).toBe("Text To Image");
  });
});
