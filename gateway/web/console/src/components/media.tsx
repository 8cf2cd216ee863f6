/** Showing one value: a picture, a sound, a film, a text, a file. */

import type { Leaf } from "@atelier/client";
import { useEffect, useState } from "preact/hooks";
import { api } from "../state/gateway.ts";
import { Icon } from "./icons.tsx";

const PREVIEW_BYTES = 4_096;
const WHOLE_BYTES = 256 * 1_024;

/** `small` in a grid, else as large as there is room for. */
export function Media({ leaf, small, label }: { leaf: Leaf; small: boolean; label: string }) {
  switch (leaf.kind) {
    case "image":
      return leaf.url === null ? <Gone /> : <Picture url={leaf.url} label={label} />;
    case "audio":
      return leaf.url === null ? <Gone /> : <Sound url={leaf.url} label={label} />;
    case "video":
      return leaf.url === null ? <Gone /> : <Film url={leaf.url} label={label} small={small} />;
    case "text":
      return <div class="prose">{leaf.text}</div>;
    case "document":
      return leaf.assetId === null ? <Gone /> : <StoredText assetId={leaf.assetId} small={small} />;
    case "json":
      return <pre class="json">{typeof leaf.value === "object" ? JSON.stringify(leaf.value, null, 2) : String(leaf.value)}</pre>;
    case "file":
      return (
        <div class="file">
          <Icon name="file" />
          <span>{leaf.type.replaceAll("_", " ")}</span>
        </div>
      );
    default:
      return unreachable(leaf);
  }
}

function unreachable(leaf: never): null {
  void leaf;
  return null;
}

function Gone() {
  return (
    <div class="file">
      <Icon name="alert" />
      <span>not stored</span>
    </div>
  );
}

function Picture({ url, label }: { url: string; label: string }) {
  const [state, setState] = useState<"loading" | "there" | "failed">("loading");
  if (state === "failed") return <Gone />;
  return (
    <img
      class={state === "there" ? "picture picture-there" : "picture"}
      src={url}
      alt={label}
      loading="lazy"
      decoding="async"
      onLoad={() => setState("there")}
      onError={() => setState("failed")}
    />
  );
}

function Sound({ url, label }: { url: string; label: string }) {
  return (
    <div class="sound">
      <Icon name="sound" class="sound-mark" />
      <audio controls preload="metadata" src={url} aria-label={label} />
    </div>
  );
}

function Film({ url, label, small }: { url: string; label: string; small: boolean }) {
  return <video class="picture picture-there" src={url} controls={!small} muted={small} preload="metadata" aria-label={label} />;
}

function StoredText({ assetId, small }: { assetId: string; small: boolean }) {
  const [text, setText] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const controller = new AbortController();
    setText(null);
    setFailed(false);
    api.assetText(assetId, small ? PREVIEW_BYTES : WHOLE_BYTES, controller.signal).then(setText, () => {
      if (!controller.signal.aborted) setFailed(true);
    });
    return () => controller.abort();
  }, [assetId, small]);
  if (failed) return <Gone />;
  return text === null ? <div class="skeleton skeleton-text" aria-label="Reading" /> : <div class="prose">{text}</div>;
}
