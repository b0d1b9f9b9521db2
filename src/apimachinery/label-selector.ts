/** Matches label selectors against labels, as the API server does, and prints and parses selectors. No I/O. */

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] }[];
}

/** All given conditions must match. NotIn matches an object without the label. */
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

/** The selector as the API server reads it. Sorted, so that equal selectors share a watch. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(({ key, operator, values = [] }) => OPERATORS[operator](key, values));
  return [...equal, ...others].sort().join(",");
}

const REQUIREMENT = /([^\s,!()=]+) (in|notin) \(([^)]*)\)|!([^,]+)|([^,=]+)=([^,]*)|([^,]+)/g;

/** Parses what `selectorText` prints. */
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
