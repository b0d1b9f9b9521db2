/** The permissions that a binding needs, beyond those that the tests on a real API server show. */
import assert from "node:assert/strict";
import type { ObjectRef } from "../../../../src/apimachinery/objects.ts";
import {
  CONFIG_MAPS,
  JOBS,
  NAMESPACES,
  SECRETS,
  SERVICE_ACCOUNTS,
  VAULT_CONNECTIONS,
} from "../../../../src/apimachinery/resources.ts";
import { type Needs, requiredAccess } from "../../../../src/controllers/binding/required-access.ts";
import { AccessDenied } from "../../../../src/kube/access-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { parseSources } from "../../../../src/sources/registry.ts";
import type { VaultConnected } from "../../../../src/vault/types.ts";
import { bindingOf } from "../../objects.ts";

const account = { resource: SERVICE_ACCOUNTS, namespace: "registry", name: "inlay" };
const target = { apiVersion: "v1", kind: "ConfigMap", selector: {}, fields: [] };

function needed(more: Partial<Needs>): string[] {
  const nothing: Needs = {
    binding: bindingOf({}),
    account,
    references: { parsedSources: [], sources: new Map() },
    objects: [],
    collections: [],
    lookups: [],
    connections: { get: () => undefined },
    problems: [],
  };
  return requiredAccess({ ...nothing, ...more }).map(({ ref: { resource, namespace, name = "*" }, verbs }) =>
    [`${namespace}/${resource.plural}/${name}:`, ...verbs].join(" "),
  );
}

describe("the permissions that a binding needs", () => {
  it("include a token of its account if that logs in to Vault", () => {
    const parsed = (vault: object) => {
      const connection = { name: "main" };
      const source = { name: "s3", vault: { connection, refresh: "1m", ...vault } };
      const binding = bindingOf({ spec: { ...bindingOf({}).spec, sources: [source] as never } });
      return { references: { parsedSources: parseSources(binding), sources: new Map() } };
    };
    const vaultWith = (usesAccountTokens: boolean) => ({
      get: ({ resource, namespace, name }: ObjectRef) =>
        resource === VAULT_CONNECTIONS && namespace === "registry" && name === "main"
          ? {
              phase: "ready" as const,
              revision: "1",
              connected: {} as VaultConnected,
              paths: [],
              labels: {},
              usesAccountTokens,
            }
          : undefined,
    });
    const data = { data: { mount: "kv", path: "s3", kv: 2 } };
    const token = "registry/serviceaccounts/token/inlay: create";
    assert.deepEqual(needed({ ...parsed(data), connections: vaultWith(true) }), [token]);
    assert.deepEqual(needed({ ...parsed(data), connections: vaultWith(false) }), []);
    assert.deepEqual(needed({ ...parsed({ health: {} }), connections: vaultWith(true) }), []);
  });

  it("are on all objects of a kind if the target selects by labels, and all of an object that it creates", () => {
    const ref = { resource: CONFIG_MAPS, namespace: "web", name: "a" };
    assert.deepEqual(needed({ objects: [{ target, ref }] }), ["web/configmaps/*: get list watch patch"]);
    const { selector: _, ...rest } = target;
    const named = { ...rest, name: "a", create: { manifest: {} } };
    assert.deepEqual(needed({ objects: [{ target: named, ref }] }), [
      "web/configmaps/a: get list watch patch create delete",
    ]);
    const kept = { ...named, onRelease: "Retain" as const };
    const again = { ...kept, create: { manifest: {}, onImmutable: "Recreate" as const } };
    const all = [kept, again].map((target) => needed({ objects: [{ target, ref }] })[0]);
    assert.deepEqual(all, [
      "web/configmaps/a: get list watch patch create",
      "web/configmaps/a: get list watch patch create delete",
    ]);
  });

  it("are on everything that a selector watches, although it matches nothing there", () => {
    const collections = [
      { ref: { resource: NAMESPACES, namespace: undefined }, verbs: ["list", "watch"] },
      { ref: { resource: CONFIG_MAPS, namespace: "web" }, verbs: ["get", "list", "watch", "patch"] },
    ];
    assert.deepEqual(needed({ collections }), [
      "undefined/namespaces/*: list watch",
      "web/configmaps/*: get list watch patch",
    ]);
  });

  it("are on all Jobs of a namespace if one restarts, because its copy has another name", () => {
    const paths = { template: "spec.template" };
    const lookup = {
      step: 0,
      resource: JOBS,
      paths,
      namespace: "shop",
      find: { by: "name", name: "migrate" },
    } as const;
    const lookups = [lookup] as unknown as Needs["lookups"];
    assert.deepEqual(needed({ lookups }), ["shop/jobs/*: get list watch create delete"]);
  });

  it("include what was denied, such as for an object that the spec no longer names", () => {
    const identity = serviceAccountIdentity("registry", "inlay");
    const access = { identity, ref: { resource: SECRETS, namespace: "web", name: "old" }, verbs: ["get", "patch"] };
    assert.deepEqual(needed({ problems: [undefined, new AccessDenied(access, "denied", "kubectl")] }), [
      "web/secrets/old: get patch",
    ]);
  });
});
