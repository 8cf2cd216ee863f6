import { describe, expect, it } from "vitest";
import { Api, ApiError } from "../src/http.ts";

interface Seen {
  url: string;
  init: RequestInit;
}

function answering(status: number, body: unknown, headers: Record<string, string> = {}): { api: Api; seen: Seen[] } {
  const seen: Seen[] = [];
  const api = new Api({
    token: "secret",
    fetch: (input, init) => {
      seen.push({ url: String(input), init: init ?? {} });
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return Promise.resolve(new Response(text, { status, headers }));
    },
  });
  return { api, seen };
}

async function failureOf(promise: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw new Error("no ApiError was thrown");
  return error;
}

describe("Api", () => {
  it("leaves_empty_filters_out_and_names_the_page", async () => {
    const { api, seen } = answering(200, { generations: [], next: "c1" });
    const page = await api.generations({ status: "failed", provider: undefined, model: "", limit: 20 });
    expect(page).toEqual({ items: [], next: "c1" });
    expect(seen[0]?.url).toBe("/api/v1/generations?status=failed&limit=20");
    expect(new Headers(seen[0]?.init.headers).get("authorization")).toBe("Bearer secret");
  });

  it("escapes_ids", async () => {
    const { api, seen } = answering(200, {});
    await api.job("a/../b?c");
    expect(seen[0]?.url).toBe("/api/v1/jobs/a%2F..%2Fb%3Fc");
  });

  it("a_refusal_keeps_its_reason_and_the_request_id", async () => {
    const { api } = answering(400, {
      error: {
        code: "invalid_argument",
        reason: "BAD_LIMIT",
        message: "limit is too large",
        details: { fields: [{ field: "limit", description: "at most 500" }] },
        request_id: "req-1",
      },
    });
    const error = await failureOf(api.jobs({ limit: 9_999 }));
    expect(error).toMatchObject({
      status: 400,
      code: "invalid_argument",
      reason: "BAD_LIMIT",
      message: "limit is too large",
      requestId: "req-1",
      fields: [{ field: "limit", description: "at most 500" }],
    });
  });

  it("an_answer_of_a_proxy_is_an_api_error_too", async () => {
    const { api } = answering(502, "<html>", { "x-request-id": "req-2" });
    expect(await failureOf(api.jobs())).toMatchObject({ status: 502, code: "unavailable", reason: "", requestId: "req-2" });
  });

  it("a_success_that_is_not_json_is_an_api_error", async () => {
    const { api } = answering(200, "<html>");
    expect(await failureOf(api.jobs())).toMatchObject({ code: "internal", reason: "BAD_ANSWER" });
  });

  it("no_network_a_slow_gateway_and_a_caller_that_left_are_told_apart", async () => {
    const hanging: typeof fetch = (_input, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
    const down = new Api({ fetch: () => Promise.reject(new TypeError("fetch failed")) });
    expect(await failureOf(down.jobs())).toMatchObject({ status: 0, code: "unavailable", reason: "NETWORK" });
    const slow = new Api({ fetch: hanging, timeoutMs: 5 });
    expect(await failureOf(slow.jobs())).toMatchObject({ code: "deadline_exceeded", reason: "TIMEOUT" });
    const controller = new AbortController();
    const left = failureOf(new Api({ fetch: hanging }).jobs({}, controller.signal));
    controller.abort();
    expect(await left).toMatchObject({ code: "cancelled", reason: "ABORTED" });
  });
});
