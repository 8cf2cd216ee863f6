/** Exact sums of decimal text. Amounts never pass through floating point. */

const SCALE = 12;
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;

/** Reads decimal text into units of 10⁻¹²; null when it is not decimal text. */
function units(amount: string): bigint | null {
  const match = DECIMAL.exec(amount);
  if (match === null) return null;
  const fraction = (match[3] ?? "").slice(0, SCALE).padEnd(SCALE, "0");
  const value = BigInt(`${match[2] ?? "0"}${fraction}`);
  return match[1] === "-" ? -value : value;
}

/** Writes units as the shortest decimal text with at least two decimals. */
function write(value: bigint): string {
  const sign = value < 0n ? "-" : "";
  const digits = (value < 0n ? -value : value).toString().padStart(SCALE + 1, "0");
  const fraction = digits.slice(-SCALE).replace(/0+$/, "").padEnd(2, "0");
  return `${sign}${digits.slice(0, -SCALE)}.${fraction}`;
}

/** The sum of two amounts; an amount that cannot be read counts as nothing. */
export function add(left: string, right: string): string {
  return write((units(left) ?? 0n) + (units(right) ?? 0n));
}

/** The first amount less the second. */
export function subtract(left: string, right: string): string {
  return write((units(left) ?? 0n) - (units(right) ?? 0n));
}

/** The shortest form with at least two decimals; null when the text is no amount. */
export function shortest(amount: string): string | null {
  const value = units(amount);
  return value === null ? null : write(value);
}

/** A number for drawing a bar: never for adding up. */
export function approximate(amount: string | null): number {
  return amount === null ? 0 : Number(amount) || 0;
}
