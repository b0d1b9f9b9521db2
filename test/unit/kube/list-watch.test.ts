/** In which form objects are requested: whole, as metadata, or whole only when they change. */
import assert from "node:assert/strict";
import { METADATA_ONLY } from "../../../src/kube/client.ts";
import { ListWatch, type Scope } from "../../../src/kube/list-watch.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { fakeTransport } from "../fakes.ts";
import { SECRETS } from "../resources.ts";

const FORMS: Record<string, string> = {
  "application/json": "whole",
  [METADATA_ONLY]: "metadata",
  [METADATA_ONLY.replace("Metadata;", "MetadataList;")]: "metadata",
};

/** Lists, and watches once for each list of changes, of so many characters each. Returns the requested forms, and what was shown. */
async function requested(form: Scope["form"], watches: number[][]) {
  const forms: string[] = [];
  const shown: (boolean | undefined)[][] = [];
  const formOf = ({ accept = "" }: Request) => void forms.push(FORMS[accept] ?? accept);
  let changes: number[] = [];
  const source = new ListWatch(
    fakeTransport({
      request: async (request: Request) => {
        formOf(request);
        return { metadata: { resourceVersion: "1" }, items: [] };
      },
      lines: async function* (
        request: Request,
        _: AbortSignal,
        __: () => void,
        read: (line: string) => Generator<unknown, unknown, void>,
      ) {
        formOf(request);
        for (const [at, size] of changes.entries()) {
          const metadata = { name: `s-${at}`, namespace: "registry", resourceVersion: `${at + 2}` };
          yield finish(
            read(JSON.stringify({ type: "MODIFIED", object: { metadata, data: { key: "x".repeat(size) } } })),
          );
        }
      },
    }),
    "system:serviceaccount:registry:inlay",
    { resource: SECRETS, namespace: "registry", form },
  );
  const { signal } = new AbortController();
  for await (const _ of source.list(signal));
  for (changes of watches) {
    const seen: (boolean | undefined)[] = [];
    for await (const event of source.watch("1", 300, signal, () => {}))
      seen.push(event.type === "BOOKMARK" ? undefined : event.isWhole);
    shown.push(seen);
  }
  return { forms, shown };
}

describe("a stream", () => {
  it("asks for whole objects or for their metadata", async () => {
    assert.deepEqual(await requested("whole", [[10]]), { forms: ["whole", "whole"], shown: [[true]] });
    assert.deepEqual(await requested("metadata", [[10]]), { forms: ["metadata", "metadata"], shown: [[false]] });
  });

  it("of changes lists metadata, and shows changed objects whole, except in the watch after one with eight large ones", async () => {
    const large = 64 * 1024;
    const { forms, shown } = await requested("changes", [
      [10, ...Array(7).fill(large)],
      Array(10).fill(large),
      [10],
      [10],
    ]);
    assert.deepEqual(forms, ["metadata", "whole", "whole", "metadata", "whole"]);
    assert.deepEqual(shown, [Array(8).fill(true), Array(8).fill(true), [false], [true]]);
  });
});
