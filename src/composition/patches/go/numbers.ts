/** Parses numbers and booleans like Go's strconv. Returns undefined for invalid text. */
import { isInt64 } from "../../../apimachinery/json.ts";

const INTEGER = /^[+-]?\d+$/;
/** Leading zeros are allowed; more digits never fit an int64. */
const MAX_DIGITS = /^[+-]?0*\d{1,19}$/;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const HEX = /^([+-]?)0[xX]([\da-fA-F]*)(?:\.([\da-fA-F]*))?[pP]([+-]?\d+)$/;
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...["1", "t", "T", "TRUE", "true", "True"].map((text) => [text, true] as const),
  ...["0", "f", "F", "FALSE", "false", "False"].map((text) => [text, false] as const),
]);

export const parseBoolean = (text: string): boolean | undefined => BOOLEANS.get(text);

export function parseInteger(text: string): bigint | undefined {
  if (!INTEGER.test(text) || !MAX_DIGITS.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return isInt64(value) ? value : undefined;
}

/** Also parses infinity, NaN, hexadecimal digits, and underscores between digits. */
export function parseFloat64(text: string): number | undefined {
  if (/^[+-]?inf(?:inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return Number.NaN;
  if (!areBetweenDigits(text)) return undefined;
  const digits = text.replaceAll("_", "");
  const value = DECIMAL.test(digits) ? Number(digits) : hexFloat(digits);
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}

function areBetweenDigits(text: string): boolean {
  const isHex = /^[+-]?0x/i.test(text);
  return !(isHex ? /(?<![\da-fx])_|_(?![\da-f])/i : /(?<!\d)_|_(?!\d)/).test(text);
}

const [MANTISSA_BITS, LEAST_EXPONENT, MOST_EXPONENT] = [53, -1074, 971];

function hexFloat(text: string): number | undefined {
  const [, sign, whole = "", fraction = "", power] = HEX.exec(text) ?? [];
  if (sign === undefined || whole + fraction === "") return undefined;
  const digits = (whole + fraction).replace(/^0+/, "");
  const exponent = Number(power) - 4 * fraction.length;
  const magnitude = digits === "" ? 0 : scaled(BigInt(`0x${digits}`), exponent);
  return sign === "-" ? -magnitude : magnitude;
}

/** The float64 nearest to mantissa times two to the power of exponent; half to even. */
function scaled(mantissa: bigint, exponent: number): number {
  const length = mantissa.toString(2).length;
  const target = Math.max(length + exponent - MANTISSA_BITS, LEAST_EXPONENT);
  if (target > MOST_EXPONENT) return Infinity;
  const shift = target - exponent;
  if (shift > length + 1) return 0;
  if (shift <= 0) return Number(mantissa << BigInt(-shift)) * 2 ** target;
  const [kept, half] = [mantissa >> BigInt(shift), 1n << BigInt(shift - 1)];
  const rest = BigInt.asUintN(shift, mantissa);
  const isUp = rest > half || (rest === half && kept % 2n === 1n);
  return Number(isUp ? kept + 1n : kept) * 2 ** target;
}
