/** A sum with what it is made of and what it leaves out. */

import type { CostGroup } from "@atelier/client";
import { count, price } from "../state/format.ts";

export function Totals({ total }: { total: CostGroup }) {
  return (
    <section class="totals" aria-label="Total">
      <div class="total total-main">
        <span class="total-name">Total</span>
        <Sums group={total} />
      </div>
      <Part n={total.call_count} name="calls" />
      <Part n={total.completed_count} name="completed" />
      <Part n={total.failed_count} name="failed" tone="bad" />
      {total.interrupted_count > 0 && <Part n={total.interrupted_count} name="interrupted" tone="warn" />}
      <Part n={total.cancelled_count} name="cancelled" />
      <Part n={total.running_count} name="not ended" tone="live" />
      <Part n={total.unpriced_count} name="unpriced" tone="warn" title={`${count(total.unpriced_count, "call")} without a known price; not in the total`} />
    </section>
  );
}

/** The amounts of a group, one per currency; in words when there is none. */
export function Sums({ group }: { group: CostGroup }) {
  if (group.costs.length === 0) {
    const silent = group.unpriced_count > 0 || group.running_count > 0;
    return silent ? <span class="unpriced">not known</span> : <span class="amount">{price("0", group.currency)}</span>;
  }
  return (
    <span class="sums">
      {group.costs.map((one) => (
        <span key={one.currency} class="amount">
          {price(one.amount, one.currency)}
        </span>
      ))}
    </span>
  );
}

function Part({ n, name, tone, title }: { n: number; name: string; tone?: string; title?: string }) {
  return (
    <div class={`total ${n > 0 && tone !== undefined ? `tone-${tone}` : ""} ${n === 0 ? "total-none" : ""}`} title={title}>
      <span class="total-name">{name}</span>
      <span class="total-n">{n}</span>
    </div>
  );
}
