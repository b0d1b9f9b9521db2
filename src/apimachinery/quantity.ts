/** Compares quantities of Kubernetes, such as `500m` and `0.5`, by their exact amounts. Pure. */

const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE])i|([numkMGTPE])|[eE]([+-]?\d{1,2}))?$/;
/** The API server accepts longer texts, but no larger amounts. */
const MAX_LENGTH = 64;
const DECIMAL = "num kMGTPE";
const BINARY = "KMGTPE";
/** The API server rounds up to billionths. */
const NANO = 9;

export function isSameQuantity(a: string, b: string): boolean {
  const amount = billionthsOf(a);
  return amount !== undefined && amount === billionthsOf(b);
}

/** Undefined for an invalid quantity. */
function billionthsOf(text: string): bigint | undefined {
  const [, sign, whole = "", fraction = "", binary, decimal = " ", exponent] =
    (text.length <= MAX_LENGTH && QUANTITY.exec(text)) || [];
  const digits = whole + fraction;
  if (digits === "") return undefined;
  const factor = binary === undefined ? 1n : 1024n ** BigInt(BINARY.indexOf(binary) + 1);
  const tens = exponent === undefined ? 3 * DECIMAL.indexOf(decimal) - NANO : Number(exponent);
  const shift = NANO + tens - fraction.length;
  const amount = scaled(BigInt(digits) * factor, shift);
  return sign === "-" ? -amount : amount;
}

function scaled(amount: bigint, shift: number): bigint {
  if (shift >= 0) return amount * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (amount + divisor - 1n) / divisor;
}
