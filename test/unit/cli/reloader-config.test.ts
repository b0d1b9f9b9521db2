/** Reads of the section `reloader` of the configuration, and the errors for its mistakes. */
import assert from "node:assert/strict";
import { installationOf } from "../../../src/cli/config-file.ts";

const HEAD = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
const of = (text: string, scope?: string) => installationOf(HEAD + text, "inlay-system", scope);

describe("the section reloader of the configuration", () => {
  it("sets the namespaces, the selectors and the keys of the annotations", () => {
    const { reloader } = of(`
reloader:
  namespaces: ["team-*"]
  exceptNamespaces: [team-b]
  namespaceSelector:
    matchLabels: { reload: "true" }
    matchExpressions: [{ key: example.com/tier, operator: NotIn, values: [db, ""] }, { key: old, operator: DoesNotExist }]
  sourceSelector: { matchLabels: { app.kubernetes.io/part-of: shop } }
  ignoreKinds: [ConfigMap, CronJob]
  annotations: { auto: wave.pusher.com/update-on-config-change }
  recordOnWorkloads: true
  autoReloadAll: true
  jobs: true
  reloadOnCreate: true
  reloadOnDelete: false
  runCronJobs: true
  providerClasses: true
  debounce: 2s
`);
    assert.deepEqual(reloader, {
      namespaces: ["team-*"],
      exceptNamespaces: ["team-b"],
      namespaceSelector: {
        matchLabels: { reload: "true" },
        matchExpressions: [
          { key: "example.com/tier", operator: "NotIn", values: ["db", ""] },
          { key: "old", operator: "DoesNotExist" },
        ],
      },
      sourceSelector: { matchLabels: { "app.kubernetes.io/part-of": "shop" } },
      ignoreKinds: ["ConfigMap", "CronJob"],
      annotations: { auto: "wave.pusher.com/update-on-config-change" },
      recordOnWorkloads: true,
      autoReloadAll: true,
      jobs: true,
      reloadOnCreate: true,
      reloadOnDelete: false,
      runCronJobs: true,
      providerClasses: true,
      debounce: "2s",
    });
  });

  it("waits half a second for further changes by default, and not at all with 0", () => {
    const debounceOf = (more: string) => of(`reloader: { namespaces: [shop]${more} }`).reloader?.debounce;
    assert.equal(debounceOf(""), "500ms");
    for (const none of ["0", "0s", '"0"', "0m0s"]) assert.equal(debounceOf(`, debounce: ${none}`), undefined);
  });

  const mistakes: [text: string, says: RegExp][] = [
    ["reloader:", /^reloader: must be an object$/],
    ["reloader: {}", /^reloader\.namespaces: .*\["\*"\]/],
    ["reloader: { namespaces: [] }", /^reloader\.namespaces: .*\["\*"\]/],
    ["reloader: { namespaces: shop }", /^reloader\.namespaces: must be a list$/],
    ["reloader: { namespace: [shop] }", /^reloader\.namespace: .*namespaces/],
    ["reloader: { namespaces: [shop], debounce: 1 }", /^reloader\.debounce: must be a duration, such as 500ms/],
    ["reloader: { namespaces: [shop], debounce: 99999999h }", /^reloader\.debounce: .*write, for example, 45s/],
    ["reloader: { namespaces: [shop], jobs: 1 }", /^reloader\.jobs: must be true or false$/],
    ["reloader: { namespaces: [shop], autoReloadAll: all }", /^reloader\.autoReloadAll: must be true or false$/],
    ...(
      [
        ["exceptNamespaces: kube-*", /^reloader\.exceptNamespaces: must be a list$/],
        ["recordOnWorkloads: yes", /^reloader\.recordOnWorkloads: must be true or false$/],
        ["namespaceSelector: team=a", /^reloader\.namespaceSelector: must be an object$/],
        ["namespaceSelector: {}", /^reloader\.namespaceSelector: .*everything/],
        ["namespaceSelector: { matchLabels: {} }", /^reloader\.namespaceSelector: .*everything/],
        ["namespaceSelector: { labels: {} }", /^reloader\.namespaceSelector\.labels: /],
        ["sourceSelector: { matchLabels: [] }", /^reloader\.sourceSelector\.matchLabels: must be an object$/],
        ["sourceSelector: { matchLabels: { a: true } }", /^reloader\.sourceSelector\.matchLabels\.a: .*quotes/],
        ["sourceSelector: { matchLabels: { a b: c } }", /^reloader\.sourceSelector\.matchLabels\.a b: must be the key/],
        [
          "sourceSelector: { matchExpressions: [{ key: a }] }",
          /matchExpressions\[0\]\.operator: must be In, NotIn, Exists/,
        ],
        ["sourceSelector: { matchExpressions: [{ key: a, operator: In }] }", /\[0\]\.values: In takes at least one$/],
        [
          "sourceSelector: { matchExpressions: [{ key: a, operator: Exists, values: [b] }] }",
          /\[0\]\.values: Exists takes none$/,
        ],
        [
          "ignoreKinds: [secrets]",
          /^reloader\.ignoreKinds\[0\]: must be one of Secret, ConfigMap, SecretProviderClass, /,
        ],
        ["ignoreKinds: [Secret, ConfigMap, SecretProviderClass]", /^reloader\.ignoreKinds: .*nothing restarts/],
        ["ignoreKinds: [Job], jobs: true", /^reloader\.ignoreKinds: .*Job.*reloader\.jobs/],
        ["annotations: { atuo: a/b }", /^reloader\.annotations\.atuo: .*auto\b/],
        [
          "annotations: { auto: 'a b' }",
          /^reloader\.annotations\.auto: must be the key of an annotation, such as reloader/,
        ],
        ["annotations: { auto: a/b, search: a/b }", /^reloader\.annotations: auto and search have the same key, a\/b$/],
      ] as const
    ).map(([rest, says]): [string, RegExp] => [`reloader: { namespaces: ["*"], ${rest} }`, says]),
  ];
  for (const [text, says] of mistakes) it(`rejects ${text}`, () => assert.throws(() => of(text), { message: says }));

  it("rejects a namespaceSelector in an installation for one namespace, which sees no labels of namespaces", () => {
    const text = 'reloader: { namespaces: ["*"], namespaceSelector: { matchLabels: { a: b } } }';
    assert.throws(() => of(text, "shop"), {
      message: /^reloader\.namespaceSelector: this Inlay is installed for the namespace shop/,
    });
    assert.ok(of(text).reloader);
  });
});
