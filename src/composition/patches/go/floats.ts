/** Formats float64s like Go's strconv.FormatFloat. */

/** The digits of a number, without zeros at either end. The decimal point is before the digit at `point`. */
interface Decimal {
  readonly digits: string;
  readonly point: number;
}

/** The bits of a positive number: mantissa times two to the power of exponent. */
interface Binary {
  readonly mantissa: bigint;
  readonly exponent: number;
}

/** The verbs are those of FormatFloat. A precision of -1 means the fewest digits that identify the number. */
export function formatFloat(value: number, verb: string, precision: number): string {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (!Number.isFinite(value)) return `${sign || "+"}Inf`;
  const magnitude = Math.abs(value);
  switch (verb) {
    case "b":
      return sign + binaryText(binaryOf(magnitude));
    case "x":
    case "X":
      return sign + hexText(binaryOf(magnitude), verb, precision);
    case "e":
    case "E":
      return sign + withExponent(magnitude, verb, precision);
    case "f":
      return sign + withoutExponent(magnitude, precision);
    default:
      return sign + shorter(magnitude, verb, precision);
  }
}

function withExponent(value: number, verb: string, precision: number): string {
  const decimal = precision < 0 ? shortest(value) : rounded(exact(value), precision + 1);
  return exponentText(decimal, verb, precision < 0 ? Math.max(decimal.digits.length - 1, 0) : precision);
}

function withoutExponent(value: number, precision: number): string {
  if (precision < 0) {
    const decimal = shortest(value);
    return pointText(decimal, Math.max(decimal.digits.length - decimal.point, 0));
  }
  const decimal = exact(value);
  return pointText(rounded(decimal, decimal.point + precision), precision);
}

/** %g: with an exponent if that is shorter. */
function shorter(value: number, verb: string, precision: number): string {
  const isShortest = precision < 0;
  const decimal = isShortest ? shortest(value) : rounded(exact(value), precision || 1);
  const { digits, point } = decimal;
  const wanted = isShortest ? digits.length : precision || 1;
  const most = isShortest ? SHORTEST_MOST : wanted > digits.length && digits.length >= point ? digits.length : wanted;
  const exponent = point - 1;
  if (exponent < -4 || exponent >= most) {
    return exponentText(decimal, verb === "G" ? "E" : "e", Math.max(Math.min(wanted, digits.length) - 1, 0));
  }
  return pointText(decimal, Math.max((wanted > point ? digits.length : wanted) - point, 0));
}

/** With more digits than these before the point, the shortest form has an exponent. */
const SHORTEST_MOST = 6;

function exponentText({ digits, point }: Decimal, letter: string, precision: number): string {
  const fraction = precision > 0 ? `.${digits.slice(1, precision + 1).padEnd(precision, "0")}` : "";
  const exponent = digits === "" ? 0 : point - 1;
  return `${digits[0] ?? "0"}${fraction}${letter}${signedText(exponent)}`;
}

function pointText({ digits, point }: Decimal, precision: number): string {
  const whole = point > 0 ? digits.slice(0, point).padEnd(point, "0") : "0";
  if (precision === 0) return whole;
  const fraction = point > 0 ? digits.slice(point) : "0".repeat(Math.min(-point, precision)) + digits;
  return `${whole}.${fraction.slice(0, precision).padEnd(precision, "0")}`;
}

const signedText = (exponent: number) => `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;

function shortest(value: number): Decimal {
  if (value === 0) return { digits: "", point: 0 };
  const [mantissa = "", exponent] = value.toExponential().split("e");
  return { digits: mantissa.replace(".", ""), point: Number(exponent) + 1 };
}

/** All digits of the number that the bits are. */
function exact(value: number): Decimal {
  if (value === 0) return { digits: "", point: 0 };
  const { mantissa, exponent } = binaryOf(value);
  const text = String(exponent >= 0 ? mantissa << BigInt(exponent) : mantissa * 5n ** BigInt(-exponent));
  return { digits: text.replace(/0+$/, ""), point: text.length + Math.min(exponent, 0) };
}

/** Rounds to so many digits; half to even. */
function rounded(decimal: Decimal, count: number): Decimal {
  const { digits, point } = decimal;
  if (count < 0 || count >= digits.length) return decimal;
  const kept = digits.slice(0, count);
  const isHalfway = digits[count] === "5" && digits.length === count + 1;
  const isUp = isHalfway ? Number(kept.at(-1) ?? "0") % 2 === 1 : (digits[count] as string) >= "5";
  if (!isUp) {
    const left = kept.replace(/0+$/, "");
    return { digits: left, point: left === "" ? 0 : point };
  }
  const more = kept.replace(/9+$/, "");
  if (more === "") return { digits: "1", point: point + 1 };
  return { digits: more.slice(0, -1) + String(Number(more.at(-1)) + 1), point };
}

const MANTISSA_BITS = 52n;
const BIAS = 1075;

function binaryOf(value: number): Binary {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const raw = bits.getBigUint64(0);
  const [field, fraction] = [Number(raw >> MANTISSA_BITS) & 0x7ff, BigInt.asUintN(52, raw)];
  // Numbers near zero have no leading bit.
  if (field === 0) return { mantissa: fraction, exponent: 1 - BIAS };
  return { mantissa: fraction | (1n << MANTISSA_BITS), exponent: field - BIAS };
}

const binaryText = ({ mantissa, exponent }: Binary) => `${mantissa}p${exponent < 0 ? "" : "+"}${exponent}`;

/** One bit before the point, and at most 15 digits after it. */
function hexText({ mantissa, exponent }: Binary, verb: string, precision: number): string {
  let [bits, power] = [mantissa << 8n, mantissa === 0n ? 0 : exponent + Number(MANTISSA_BITS)];
  for (; bits !== 0n && bits >> 60n === 0n; bits <<= 1n) power -= 1;
  if (precision >= 0 && precision < 15) {
    const shift = BigInt(60 - 4 * precision);
    const rest = BigInt.asUintN(Number(shift), bits);
    const half = 1n << (shift - 1n);
    bits >>= shift;
    if (rest > half || (rest === half && bits % 2n === 1n)) bits += 1n;
    bits <<= shift;
    if (bits >> 61n !== 0n) {
      bits >>= 1n;
      power += 1;
    }
  }
  const all = BigInt.asUintN(60, bits).toString(16).padStart(15, "0");
  const fraction = precision < 0 ? all.replace(/0+$/, "") : all.slice(0, precision).padEnd(precision, "0");
  const text = `0x${bits >> 60n}${fraction === "" ? "" : `.${fraction}`}p${signedText(power)}`;
  return verb === "X" ? text.toUpperCase() : text;
}
