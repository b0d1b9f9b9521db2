/** A label selector and labels come in, whether they match goes out, as the API server would have it; and the selector as a text. No I/O. */

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] }[];
}

/** All that is given has to hold. An object without the label is NotIn, whatever the values. */
export function matchesLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const labelOf = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  const holds = {
    In: (value: string | undefined, values: string[]) => value !== undefined && values.includes(value),
    NotIn: (value: string | undefined, values: string[]) => value === undefined || !values.includes(value),
    Exists: (value: string | undefined) => value !== undefined,
    DoesNotExist: (value: string | undefined) => value === undefined,
  };
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => holds[operator](labelOf(key), values))
  );
}

const OPERATORS = {
  In: (key: string, values: readonly string[]) => `${key} in (${values.join(",")})`,
  NotIn: (key: string, values: readonly string[]) => `${key} notin (${values.join(",")})`,
  Exists: (key: string) => key,
  DoesNotExist: (key: string) => `!${key}`,
};

/** As the API server takes it; in an order of its own, so that those who mean the same share a stream. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(({ key, operator, values = [] }) => OPERATORS[operator](key, values));
  return [...equal, ...others].sort().join(",");
}

const REQUIREMENT = /([^\s,!()=]+) (in|notin) \(([^)]*)\)|!([^,]+)|([^,=]+)=([^,]*)|([^,]+)/g;

/** Reads what `selectorText` writes. */
export function parseSelector(text: string): LabelSelector {
  const matchExpressions = [...text.matchAll(REQUIREMENT)].map(
    ([, listed = "", how, values = "", absent, equal, value = "", present = ""]) => {
      if (how !== undefined)
        return {
          key: listed,
          operator: how === "in" ? ("In" as const) : ("NotIn" as const),
          values: values.split(","),
        };
      if (absent !== undefined) return { key: absent, operator: "DoesNotExist" as const };
      if (equal !== undefined) return { key: equal, operator: "In" as const, values: [value] };
      return { key: present, operator: "Exists" as const };
    },
  );
  return { matchExpressions };
}
