/** Reading fields out of parsed JSON that nobody has checked. */

/** An object of unknown fields. */
export type Fields = Record<string, unknown>;

/** Whether the value is an object, neither null nor a list. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The field as text, else the fallback. */
export function text(fields: Fields, key: string, otherwise = ""): string {
  const value = fields[key];
  return typeof value === "string" ? value : otherwise;
}

/** The field as text, null when it is missing, empty or something else. */
export function textOrNull(fields: Fields, key: string): string | null {
  const value = fields[key];
  return typeof value === "string" && value !== "" ? value : null;
}

/** The field as a finite number, else null. */
export function numberOrNull(fields: Fields, key: string): number | null {
  const value = fields[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The field as an object, else an empty one. */
export function record(fields: Fields, key: string): Fields {
  const value = fields[key];
  return isRecord(value) ? value : {};
}

/** The texts in a list field; everything else in it is left out. */
export function texts(fields: Fields, key: string): string[] {
  const value = fields[key];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
