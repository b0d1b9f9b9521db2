/** The kind of source `configMap`. */
import type { SourceKind } from "./source.ts";
import { dataSource, entries } from "./watched-source.ts";

export const configMap: SourceKind = {
  parse: ({ name, configMap: at }, binding) =>
    at &&
    dataSource("ConfigMap", name, at, binding, ({ data, binaryData }) => [
      ...entries(data, "utf8"),
      ...entries(binaryData, "base64"),
    ]),
};
