/** Which bindings count as composed for a claim. */
import assert from "node:assert/strict";
import { bindingKey, type SecretBinding } from "../../../../src/api/binding.ts";
import { CLAIM_ANNOTATION, CLAIM_UID_LABEL, COMPOSITION_LABEL, TEMPLATE_LABEL } from "../../../../src/api/composed.ts";
import type { BindingListener } from "../../../../src/cache/binding-store.ts";
import { ComposedIndex } from "../../../../src/controllers/composition/composed-index.ts";
import { bindingOf } from "../../objects.ts";

const labels = { [COMPOSITION_LABEL]: "harbors", [TEMPLATE_LABEL]: "s3", [CLAIM_UID_LABEL]: "1" };
const annotations = { [CLAIM_ANNOTATION]: "shop/harbor" };

describe("the bindings of a claim", () => {
  it("are at most 256 of a namespace, so that labels of others keep none away", () => {
    const all = new Map<string, SecretBinding>();
    let listener: BindingListener | undefined;
    const listen = (each: BindingListener) => {
      listener = each;
    };
    const index = new ComposedIndex({ get: (key) => all.get(key), listen }, () => {});
    const put = (namespace: string, name: string) => {
      const binding = bindingOf({ metadata: { namespace, name, labels, annotations } });
      all.set(bindingKey(binding), binding);
      listener?.changed(bindingKey(binding), "change");
    };
    for (let n = 0; n < 300; n++) put("other", `${n}`);
    put("shop", "s3");
    const names = () => index.bindingsOf("harbors", "shop/harbor").map(bindingKey);
    assert.deepEqual([names().length, names().at(-1), names().includes("other/256")], [257, "shop/s3", false]);
    const first = all.get("other/0") as SecretBinding;
    all.delete("other/0");
    listener?.gone("other/0", first);
    assert.equal(names().includes("other/256"), true);
    assert.equal(index.bindingsOf("harbors", "shop/harbor", Number.POSITIVE_INFINITY).length, 300);
  });
});
