/** A run's calls to providers, and what they have cost. */

import type { Prediction } from "../frames.ts";
import * as money from "../money.ts";
import type { Draft } from "./draft.ts";

/** The news of one call; the run's cost is carried along. */
export function prediction(draft: Draft, frame: Prediction): void {
  const before = draft.state.predictions.get(frame.id);
  draft.predictions().set(frame.id, {
    ...frame,
    node_id: frame.node_id || (before?.node_id ?? ""),
    started_at: frame.started_at ?? before?.started_at ?? null,
    currency: frame.currency ?? before?.currency ?? null,
  });
  const cost = draft.state.cost;
  const amounts = new Map(cost.amounts);
  if (before) book(amounts, before, money.subtract);
  book(amounts, frame, money.add);
  draft.set({
    cost: {
      amounts,
      unpriced: cost.unpriced + Number(isUnpriced(frame)) - Number(before !== undefined && isUnpriced(before)),
      running: cost.running + Number(isOpen(frame)) - Number(before !== undefined && isOpen(before)),
    },
  });
}

function book(amounts: Map<string, string>, call: Prediction, sum: (left: string, right: string) => string): void {
  if (call.cost === null) return;
  const currency = call.currency ?? "USD";
  amounts.set(currency, sum(amounts.get(currency) ?? "0", call.cost));
}

function isOpen(call: Prediction): boolean {
  return call.status === "running" || call.status === "pending" || call.status === "booting";
}

function isUnpriced(call: Prediction): boolean {
  return call.cost === null && !isOpen(call);
}
