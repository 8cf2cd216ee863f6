/** Reading the values that nodes give: finding the media in them and where its bytes are. */

import { isRecord } from "./read.ts";

/** What one value is, for showing it. */
export type Leaf =
  | { kind: "image" | "audio" | "video" | "file"; at: Place; url: string | null; assetId: string | null; type: string }
  | { kind: "text"; at: Place; text: string }
  /** Text whose bytes have to be fetched. */
  | { kind: "document"; at: Place; url: string | null; assetId: string | null; type: string }
  | { kind: "json"; at: Place; value: unknown };

/** Where in a result a value sits. */
export interface Place {
  handle: string;
  /** The position in a list; null when the handle gave one value. */
  element: number | null;
}

const KINDS: ReadonlyMap<string, "image" | "audio" | "video" | "file" | "document"> = new Map([
  ["image", "image"],
  ["audio", "audio"],
  ["video", "video"],
  ["model_3d", "file"],
  ["document", "file"],
  ["text", "document"],
  ["html", "document"],
] as const);

/** Every value of a result, lists taken apart, empty ones left out. */
export function leavesOf(outputs: Record<string, unknown>, assetUrl: (id: string) => string): Leaf[] {
  const leaves: Leaf[] = [];
  // A piece of a stream is shown only where there is nothing whole.
  const whole = Object.entries(outputs).filter(([, value]) => !isChunk(value));
  for (const [handle, value] of whole) {
    if (Array.isArray(value) && value.some(isReference)) {
      value.forEach((one, element) => push(leaves, one, { handle, element }, assetUrl));
    } else {
      push(leaves, value, { handle, element: null }, assetUrl);
    }
  }
  if (leaves.length > 0) return leaves;
  for (const [handle, value] of Object.entries(outputs)) {
    if (isChunk(value)) push(leaves, pieceOf(value) ?? value, { handle, element: null }, assetUrl);
  }
  return leaves;
}

function push(leaves: Leaf[], value: unknown, at: Place, assetUrl: (id: string) => string): void {
  if (value === null || value === undefined || value === "") return;
  if (typeof value === "string") {
    leaves.push({ kind: "text", at, text: value });
    return;
  }
  const kind = isRecord(value) && typeof value["type"] === "string" ? KINDS.get(value["type"]) : undefined;
  if (kind === undefined || !isRecord(value) || !isReference(value)) {
    leaves.push({ kind: "json", at, value });
    return;
  }
  const assetId = assetIdOf(value);
  const url = assetId === null ? safeUrl(value["uri"]) : assetUrl(assetId);
  const type = String(value["type"]);
  if (kind === "document" && url === null) {
    const inline = typeof value["data"] === "string" ? value["data"] : inlineText(value["uri"]);
    if (inline !== null) {
      leaves.push({ kind: "text", at, text: inline });
      return;
    }
  }
  leaves.push({ kind, at, url, assetId, type });
}

/** Whether a value stands for stored or inline media. */
export function isReference(value: unknown): boolean {
  if (!isRecord(value) || typeof value["type"] !== "string" || !KINDS.has(value["type"])) return false;
  return "uri" in value || "data" in value || "asset_id" in value;
}

/** The asset a reference names, by its id or by its `asset://` address. */
export function assetIdOf(reference: Record<string, unknown>): string | null {
  const id = reference["asset_id"];
  if (typeof id === "string" && id !== "") return id;
  for (const key of ["asset_uri", "uri"]) {
    const uri = reference[key];
    const match = typeof uri === "string" ? /^asset:\/\/([^/.?#]+)/.exec(uri) : null;
    if (match?.[1] !== undefined) return match[1];
  }
  return null;
}

/** An address that may be put into a page: a path of this host, inline media, or plain http. */
function safeUrl(uri: unknown): string | null {
  if (typeof uri !== "string") return null;
  return /^(\/(?!\/)|https?:\/\/|data:(image|audio|video)\/|blob:)/.test(uri) ? uri : null;
}

/** The text inside a `data:` address of base64 text; null when it is something else. */
function inlineText(uri: unknown): string | null {
  const match = typeof uri === "string" ? /^data:text\/[^,]*;base64,(.*)$/s.exec(uri) : null;
  if (match?.[1] === undefined) return null;
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(match[1]), (one) => one.charCodeAt(0)));
  } catch {
    return null;
  }
}

/** The text in what a node shows while it works; null when it is not text. */
export function streamedText(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0) {
    const pieces = value.map(pieceOf);
    return pieces.every((one) => one !== null) ? pieces.join("") : null;
  }
  return pieceOf(value);
}

function isChunk(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && value["type"] === "chunk";
}

function pieceOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (!isChunk(value)) return null;
  const type = value["content_type"];
  return (type === undefined || type === "text") && typeof value["content"] === "string" ? value["content"] : null;
}
