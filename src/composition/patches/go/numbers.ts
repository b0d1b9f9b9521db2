/** Parses numbers and booleans like Go's strconv. Returns undefined for invalid text. */
import { isInt64 } from "../../../apimachinery/json.ts";

const QUANTITY = /^([+-]?)0*(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[+-]?\d*)$/;
type Unit = readonly [base: 2 | 10, exponent: number];
const decimalUnits = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map((each, n): [string, Unit] => [
  each,
  [10, 3 * n - 9],
]);
const binaryUnits = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((each, n): [string, Unit] => [each, [2, 10 * n + 10]]);
const UNITS: ReadonlyMap<string, Unit> = new Map([...decimalUnits, ...binaryUnits]);
/** So many digits always fit an int64. */
const SAFE_DIGITS = 18;
const NANO = 9;
/** Beyond this exponent, every number is infinite as a double. */
const MAX_EXPONENT = 400;
const MAX_INT64 = 2n ** 63n - 1n;

/** Undefined for an invalid quantity. */
export function parseQuantity(text: string): number | undefined {
  const [, sign, whole, fraction = "", suffix] = QUANTITY.exec(text) ?? [];
  if (sign === undefined || whole === undefined || suffix === undefined || text === "") return undefined;
  const unit = unitOf(suffix);
  if (unit === undefined) return undefined;
  const [base, exponent] = unit;
  const digits = (whole || "0") + fraction;
  const value = quick(digits, fraction.length, base, exponent) ?? slow(text, digits, fraction.length, base, exponent);
  // Quantities have no negative zero.
  return sign === "-" && value ? -value : value;
}

function unitOf(suffix: string): Unit | undefined {
  const known = UNITS.get(suffix);
  if (known !== undefined) return known;
  if (!/^[eE][+-]?\d{1,19}$/.test(suffix)) return undefined;
  const exponent = BigInt(suffix.slice(1).replace("+", ""));
  if (BigInt.asIntN(64, exponent) !== exponent) return undefined;
  // As in apimachinery, where an exponent has 32 bits.
  return [10, Number(BigInt.asIntN(32, exponent))];
}

/** For values that fit an int64 with a decimal exponent. */
function quick(digits: string, places: number, base: 2 | 10, exponent: number): number | undefined {
  if (base === 2 && places > 0) return undefined;
  const spare = base === 2 ? 14 - digits.length - Math.trunc((exponent * 3) / 10) : SAFE_DIGITS - digits.length;
  const scale = (base === 2 ? 0 : exponent) - places;
  if (spare < 0 || scale < -NANO) return undefined;
  const value = BigInt(digits) << BigInt(base === 2 ? exponent : 0);
  return value > MAX_INT64 ? undefined : times10(Number(value), scale);
}

/** For all other values: rounded up to a billionth, and binary units are capped at an int64. */
function slow(text: string, digits: string, places: number, base: 2 | 10, exponent: number): number | undefined {
  if (!/^[+-]?\.?\d/.test(text)) return undefined;
  const unscaled = BigInt(digits) << BigInt(base === 2 ? exponent : 0);
  const scale = places - (base === 2 ? 0 : exponent);
  if (unscaled === 0n) return times10(0, -scale);
  const billionths = toBillionths(unscaled, scale);
  if (billionths === undefined) return Infinity;
  if (base === 2 && billionths > MAX_INT64 * 10n ** 9n) return Number(MAX_INT64);
  return times10(Number(billionths), -NANO);
}

function toBillionths(unscaled: bigint, scale: number): bigint | undefined {
  const shift = NANO - scale;
  if (shift > MAX_EXPONENT) return undefined;
  if (shift >= 0) return unscaled * 10n ** BigInt(shift);
  if (-shift > String(unscaled).length) return 1n;
  const divisor = 10n ** BigInt(-shift);
  return (unscaled + divisor - 1n) / divisor;
}

/** Multiplies by the powers of ten of Go's math.Pow10, which are products of two. */
function times10(value: number, exponent: number): number {
  if (exponent === 0) return value;
  if (exponent > 308) return value * Infinity;
  if (exponent < -323) return value * 0;
  const [rest, step] = [Math.abs(exponent) % 32, Math.abs(exponent) - (Math.abs(exponent) % 32)];
  const power = exponent > 0 ? Number(`1e${step}`) * Number(`1e${rest}`) : Number(`1e-${step}`) / Number(`1e${rest}`);
  return value * power;
}

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
