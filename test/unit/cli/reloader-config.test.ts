/** What the configuration says of Reloader's annotations, and what is said of a mistake in it. */
import assert from "node:assert/strict";
import { installationOf } from "../../../src/cli/config-file.ts";

const HEAD = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
const of = (text: string, scope?: string) => installationOf(HEAD + text, "inlay-system", scope);

describe("the configuration of Reloader's annotations", () => {
  it("says where they count, for what, and by which keys", () => {
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
    });
  });

  const mistakes: [text: string, says: RegExp][] = [
    ["reloader:", /^reloader: must be an object$/],
    ["reloader: {}", /^reloader\.namespaces: must name some; write \["\*"\] for all, or leave reloader out$/],
    ["reloader: { namespaces: [] }", /^reloader\.namespaces: must name some/],
    ["reloader: { namespaces: shop }", /^reloader\.namespaces: must be a list$/],
    ["reloader: { namespace: [shop] }", /^reloader\.namespace: there is no such field; did you mean namespaces\?/],
    ["reloader: { namespaces: [shop], jobs: 1 }", /^reloader\.jobs: must be true or false$/],
    ["reloader: { namespaces: [shop], autoReloadAll: all }", /^reloader\.autoReloadAll: must be true or false$/],
    ...(
      [
        ["exceptNamespaces: kube-*", /^reloader\.exceptNamespaces: must be a list$/],
        ["recordOnWorkloads: yes", /^reloader\.recordOnWorkloads: must be true or false$/],
        ["namespaceSelector: team=a", /^reloader\.namespaceSelector: must be an object$/],
        ["namespaceSelector: {}", /^reloader\.namespaceSelector: selects everything; leave it out, or name a label$/],
        ["namespaceSelector: { matchLabels: {} }", /^reloader\.namespaceSelector: selects everything/],
        ["namespaceSelector: { labels: {} }", /^reloader\.namespaceSelector\.labels: there is no such field/],
        ["sourceSelector: { matchLabels: [] }", /^reloader\.sourceSelector\.matchLabels: must be an object$/],
        [
          "sourceSelector: { matchLabels: { a: true } }",
          /^reloader\.sourceSelector\.matchLabels\.a: .* put quotes around/,
        ],
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
        [
          "ignoreKinds: [Secret, ConfigMap, SecretProviderClass]",
          /^reloader\.ignoreKinds: has .*, so nothing restarts/,
        ],
        ["ignoreKinds: [Job], jobs: true", /^reloader\.ignoreKinds: has Job, and reloader\.jobs is true; leave one/],
        ["annotations: { atuo: a/b }", /^reloader\.annotations\.atuo: there is no such field; did you mean auto\?/],
        [
          "annotations: { auto: 'a b' }",
          /^reloader\.annotations\.auto: must be the key of an annotation, such as reloader/,
        ],
        ["annotations: { auto: a/b, search: a/b }", /^reloader\.annotations: auto and search have the same key, a\/b$/],
      ] as const
    ).map(([rest, says]): [string, RegExp] => [`reloader: { namespaces: ["*"], ${rest} }`, says]),
  ];
  for (const [text, says] of mistakes) it(`may not be ${text}`, () => assert.throws(() => of(text), { message: says }));

  it("has no selector of namespaces where Inlay is for one namespace, since it sees no labels there", () => {
    const text = 'reloader: { namespaces: ["*"], namespaceSelector: { matchLabels: { a: b } } }';
    assert.throws(() => of(text, "shop"), {
      message: /^reloader\.namespaceSelector: this Inlay is installed for the namespace shop/,
    });
    assert.ok(of(text).reloader);
  });
});
