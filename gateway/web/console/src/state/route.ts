/** The page's address: a path and a query behind the hash, so that the gateway needs to know one document only. */

import { signal } from "@preact/signals";

export interface Route {
  path: readonly string[];
  query: URLSearchParams;
}

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page. Empty query values are left out. */
export function href(path: readonly string[], query: Record<string, string | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) params.set(key, value);
  const text = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

/** Changes one value of the query of the page that is open, without a step in the history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const query = { ...Object.fromEntries(route.value.query), ...changes };
  history.replaceState(null, "", href(route.value.path, query));
  route.value = parse(location.hash);
}
