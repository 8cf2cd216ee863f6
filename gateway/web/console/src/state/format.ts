/** Values as people read them. */

import { type Generation, money } from "@atelier/client";

const SIGNS: Readonly<Record<string, string>> = { USD: "$", EUR: "€", GBP: "£" };

/** An amount with its currency; never for amounts that are not known. */
export function price(amount: string, currency: string | null): string {
  const text = money.shortest(amount) ?? amount;
  const grouped = text.replace(/\B(?=(\d{3})+(?=\.))/g, "\u202f");
  const sign = SIGNS[currency ?? "USD"];
  return sign === undefined ? `${grouped} ${currency ?? ""}` : `${sign}${grouped}`;
}

/** A span of time: `340 ms`, `2.1 s`, `3 m 07 s`, `2 h 05 m`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} m`;
}

/** How long a call took, in milliseconds; for one that was ended from outside, the time until then. */
export function tookOf(call: Pick<Generation, "duration_ms" | "started_at" | "completed_at">): number | null {
  if (call.duration_ms !== null || call.started_at === null || call.completed_at === null) return call.duration_ms;
  return Date.parse(call.completed_at) - Date.parse(call.started_at);
}

/** How long ago something was; further back than a day, the day. */
export function ago(iso: string, now: number): string {
  const then = Date.parse(iso);
  const seconds = Math.round((now - then) / 1_000);
  if (Number.isNaN(seconds)) return iso;
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return new Date(then).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

/** A moment in full, in the reader's own time zone. */
export function moment(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

/** A size: `812 B`, `14 kB`, `2.3 MB`. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A count with its noun: `1 image`, `6 images`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** A word of the interface's vocabulary, readable: `text_to_image` → `text to image`. */
export function words(term: string): string {
  return term.replaceAll("_", " ").replaceAll("-", " ");
}

/** The name of a node type without its path: `nodetool.image.TextToImage` → `Text To Image`. */
export function typeName(type: string): string {
  const last = type.split(".").at(-1) ?? type;
  return last.replace(/([a-z0-9])([A-Z])/g, "$1 $2");
}

/** An id short enough for a line; the whole one belongs into a title. */
export function shortId(id: string): string {
  return id.length > 14 ? `${id.slice(0, 6)}…${id.slice(-6)}` : id;
}
