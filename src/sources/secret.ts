/** The kind of source `secret`. */
import type { SourceKind } from "./source.ts";
import { dataSource, entries } from "./watched-source.ts";

export const secret: SourceKind = {
  parse: ({ name, secret: at }, binding) =>
    at &&
    dataSource("Secret", name, at, binding, ({ data, type }) => ({
      data: new Map(entries(data, "base64")),
      ...(typeof type === "string" && { type }),
    })),
};
