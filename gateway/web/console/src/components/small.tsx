/** Small things that stand in many places: a status, an amount, a moment, an id, a command to type. */

import type { JobCost } from "@atelier/client";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { now } from "../state/clock.ts";
import { ago, count, duration, moment, price, shortId, words } from "../state/format.ts";
import { Icon, type IconName } from "./icons.tsx";

const STATUS: Readonly<Record<string, { tone: string; icon: IconName | null }>> = {
  queued: { tone: "quiet", icon: "clock" },
  waiting: { tone: "quiet", icon: "clock" },
  running: { tone: "live", icon: null },
  completed: { tone: "good", icon: "check" },
  failed: { tone: "bad", icon: "cross" },
  interrupted: { tone: "warn", icon: "bolt" },
  cancelled: { tone: "quiet", icon: "stop" },
  stopped: { tone: "quiet", icon: "stop" },
  suspended: { tone: "warn", icon: "pause" },
};

export function Status({ status, compact }: { status: string; compact?: boolean }) {
  const { tone, icon } = STATUS[status] ?? { tone: "quiet", icon: "clock" };
  return (
    <span class={`status tone-${tone} ${compact ? "status-compact" : ""}`} title={compact ? status : undefined}>
      {icon === null ? <span class="pulse" aria-hidden="true" /> : <Icon name={icon} />}
      <span class={compact ? "sr" : ""}>{words(status)}</span>
    </span>
  );
}

/** What one call cost. What is not known is said in words: it is never shown as nothing. */
export function CallCost({ cost, currency, status }: { cost: string | null; currency: string | null; status: string }) {
  if (cost !== null) return <span class="amount">{price(cost, currency)}</span>;
  if (status === "running" || status === "pending") return <span class="muted">not ended</span>;
  return (
    <span class="unpriced" title="The call may have cost something; nobody has stated what.">
      unpriced
    </span>
  );
}

/** What a run cost, with what the amount leaves out. */
export function RunCost({ cost }: { cost: JobCost }) {
  return (
    <span class="run-cost">
      {cost.amount !== null && <span class="amount">{price(cost.amount, cost.currency)}</span>}
      {cost.unpriced > 0 && (
        <span class="unpriced" title={`${count(cost.unpriced, "call")} ended without a price`}>
          {cost.amount === null ? "" : "+ "}
          {cost.unpriced} unpriced
        </span>
      )}
      {cost.running > 0 && (
        <span class="muted" title={`${count(cost.running, "call")} not ended`}>
          {cost.amount === null && cost.unpriced === 0 ? "" : "+ "}
          {cost.running} open
        </span>
      )}
      {cost.amount === null && cost.unpriced === 0 && cost.running === 0 && <span class="muted">–</span>}
    </span>
  );
}

export function Ago({ at }: { at: string | null }) {
  if (at === null) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at, now.value)}
    </time>
  );
}

/** A span that is known, or one that grows since `since`. */
export function Took({ ms, since, running }: { ms: number | null; since: string | null; running: boolean }) {
  if (ms !== null) return <span class="figure">{duration(ms)}</span>;
  if (!running || since === null) return <span class="muted">–</span>;
  const passed = Math.max(0, now.value - Date.parse(since));
  return <span class="figure">{passed < 60_000 ? `${Math.floor(passed / 1_000)} s` : duration(passed)}</span>;
}

/** An id, shortened, with a way to take it along. */
export function Id({ id, whole }: { id: string; whole?: boolean }) {
  return (
    <span class="id">
      <code title={id}>{whole ? id : shortId(id)}</code>
      <Copy text={id} label="Copy the id" />
    </span>
  );
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={copied ? "Copied" : label}
      title={copied ? "Copied" : label}
      onClick={(event) => {
        event.stopPropagation();
        navigator.clipboard?.writeText(text).then(
          () => setCopied(true),
          () => undefined,
        );
      }}
    >
      <Icon name={copied ? "check" : "copy"} />
    </button>
  );
}

/** A command to type. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>
        <span class="prompt" aria-hidden="true">
          ${" "}
        </span>
        {text}
      </code>
      <Copy text={text} label="Copy the command" />
    </div>
  );
}

/** A button that asks once more before it does something that cannot be taken back. */
export function Confirm({ label, sure, act, small }: { label: string; sure: string; act: () => Promise<unknown>; small?: boolean }) {
  const [step, setStep] = useState<"idle" | "sure" | "asked" | "failed">("idle");
  useEffect(() => {
    if (step !== "sure") return;
    const timer = setTimeout(() => setStep("idle"), 4_000);
    return () => clearTimeout(timer);
  }, [step]);
  return (
    <button
      type="button"
      class={`button ${step === "sure" ? "button-danger" : ""} ${small ? "button-small" : ""}`}
      disabled={step === "asked"}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        if (step === "idle") return setStep("sure");
        setStep("asked");
        act().catch(() => setStep("failed"));
      }}
    >
      <Icon name="stop" /> {{ idle: label, sure, asked: "Asked to stop", failed: "Not stopped. Again?" }[step]}
    </button>
  );
}

/** A term with its value, in a list of facts. */
export function Fact({ term, children }: { term: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** More of a list. */
export function More({ shown, more, load }: { shown: number; more: boolean; load: () => void }) {
  return (
    <div class="more">
      <span class="muted">{shown} shown</span>
      {more && (
        <button type="button" class="button" onClick={load}>
          Show more
        </button>
      )}
    </div>
  );
}
