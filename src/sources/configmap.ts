/** The kind of source `configMap`. */
import type { SourceKind } from "./source.ts";
import { dataSource, entries } from "./watched-source.ts";

export const configMap: SourceKind = {
  parse: ({ name, configMap: at }, binding) =>
    at &&
    dataSource("ConfigMap", name, at, binding, ({ data, binaryData }) => {
      const binary = entries(binaryData, "base64");
      return {
        data: new Map([...entries(data, "utf8"), ...binary]),
        ...(binary.length > 0 && { binary: new Set(binary.map(([key]) => key)) }),
      };
    }),
};
