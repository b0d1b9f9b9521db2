/** Which Secrets and ConfigMaps a workload restarts for by Reloader's annotations, and which mistakes in them are reported. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { type ReloaderMark, ReloaderView, STANDARD_VIEW, type Texts } from "../../../../src/api/reloader.ts";
import type { ReloaderRules } from "../../../../src/api/reloader-rules.ts";
import { choiceOf, type ReloadRules, STANDARD_RULES } from "../../../../src/controllers/reloader/annotations.ts";
import { concernsClasses, NamespaceSources, type Present } from "../../../../src/controllers/reloader/sources.ts";
import { type PodPlace, type PodReference, podReferences } from "../../../../src/workloads/pod-references.ts";

const DEPLOYMENT = { kind: "Deployment", namespace: "shop" };
const AUTO = "reloader.stakater.com/auto";
const SEARCH = "reloader.stakater.com/search";
const PAUSE = "deployment.reloader.stakater.com/pause-period";
const STRATEGY = "reloader.stakater.com/rollout-strategy";
const SECRETS = "secret.reloader.stakater.com/reload";
const CONFIG_MAPS = "configmap.reloader.stakater.com/reload";

const refers = (kind: PodReference["kind"], name: string, place: PodPlace = "env"): PodReference => ({
  kind,
  name,
  by: place,
});
/** What the pods refer to, and what exists besides. */
const references = [
  refers("ConfigMap", "app"),
  refers("Secret", "app"),
  refers("Secret", "db"),
  refers("Secret", "gone"),
];
const there = (kind: Present["kind"], name: string, mark?: ReloaderMark): Present => ({ kind, name, mark });
const writes = (name: string, secrets: string[], mark?: ReloaderMark): Present => ({
  ...there("SecretProviderClass", name, mark),
  writes: secrets,
});
const CLASS_AUTO = "secretproviderclass.reloader.stakater.com/auto";
const CLASSES = "secretproviderclass.reloader.stakater.com/reload";
/** Its pods mount the class `vault`, and another class exists. */
const mounting: Pick<Situation, "references" | "present"> = {
  references: [refers("SecretProviderClass", "vault", "csi"), refers("Secret", "app")],
  present: [writes("vault", ["db", "api"]), writes("azure", ["api", "login"])],
};
const present = [
  there("ConfigMap", "app"),
  there("ConfigMap", "other"),
  there("Secret", "app"),
  there("Secret", "db", "match"),
  there("Secret", "other", "match"),
  there("Secret", "other.tls"),
];

interface Situation {
  kind?: string;
  own?: Texts;
  pods?: Texts;
  all?: boolean;
  rules?: Partial<ReloaderRules>;
  references?: PodReference[];
  present?: Present[];
}

function chosen(situation: Situation) {
  const { kind = "Deployment", own = {}, pods = {}, all = false } = situation;
  const { annotations, ignoreKinds = [], ...labelled } = situation.rules ?? {};
  const view = new ReloaderView({ ...(annotations && { annotations }), ...labelled });
  const rules = { keys: view.keys, reloadAll: all, ignored: ignoreKinds };
  const choice = choiceOf({ kind, namespace: "shop" }, view.annotationsOf(own, pods), rules);
  if (choice === undefined) return { sources: [], mistakes: [], minInterval: undefined };
  const found = new NamespaceSources(situation.present ?? present).chosen(choice, situation.references ?? references);
  return {
    sources: found.sources.map((each) => `${each.kind} ${each.name}`),
    mistakes: [...choice.mistakes, ...found.mistakes],
    minInterval: choice.minInterval,
  };
}

const REFERRED = ["Secret app", "Secret db", "Secret gone", "ConfigMap app"];
const SECRETS_REFERRED = REFERRED.slice(0, 3);

describe("a workload with annotations of Reloader restarts for", () => {
  const cases: Record<string, [Situation, string[]]> = {
    "nothing, without annotations": [{}, []],
    "nothing, by annotations that are not Reloader's": [{ own: { "stakater.com/auto": "true" } }, []],
    "all that its pods refer to, by auto": [{ own: { [AUTO]: "true" } }, REFERRED],
    "all that its pods refer to, by another spelling of true in Go": [{ own: { [AUTO]: "T" } }, REFERRED],
    "its Secrets, by secret's auto": [{ own: { "secret.reloader.stakater.com/auto": "true" } }, SECRETS_REFERRED],
    "its ConfigMaps, by configmap's auto": [
      { own: { "configmap.reloader.stakater.com/auto": "true" } },
      ["ConfigMap app"],
    ],
    "both, by both annotations": [
      { own: { "secret.reloader.stakater.com/auto": "true", "configmap.reloader.stakater.com/auto": "true" } },
      REFERRED,
    ],
    "the kind for which auto is true": [
      { own: { [AUTO]: "false", "secret.reloader.stakater.com/auto": "true" } },
      SECRETS_REFERRED,
    ],
    "nothing, if auto is false": [{ own: { [AUTO]: "false" } }, []],
    "nothing that is only used for logins": [
      {
        own: { [AUTO]: "true" },
        references: [refers("Secret", "registry", "imagePullSecret"), refers("Secret", "login", "csi")],
      },
      [],
    ],
    "a Secret that is used for logins and is also read": [
      {
        own: { [AUTO]: "true" },
        references: [refers("Secret", "both", "imagePullSecret"), refers("Secret", "both", "volume")],
      },
      ["Secret both"],
    ],
    "the names that it lists, whether referred to or not, whether existing or not": [
      { own: { [SECRETS]: "other, nowhere,," } },
      ["Secret nowhere", "Secret other"],
    ],
    "ConfigMaps that it lists": [{ own: { [CONFIG_MAPS]: "other" } }, ["ConfigMap other"]],
    "the existing names that a pattern matches": [{ own: { [SECRETS]: "o.*r" } }, ["Secret other"]],
    "a name with dots, as a name and as a pattern": [
      { own: { [SECRETS]: "other.tls" }, present: [there("Secret", "other-tls")] },
      ["Secret other-tls", "Secret other.tls"],
    ],
    "names that match a pattern as a whole": [{ own: { [SECRETS]: "[o]ther" } }, ["Secret other"]],
    "names that Reloader's anchoring of alternatives permits": [
      { own: { [SECRETS]: "d.|tls" } },
      ["Secret db", "Secret other.tls"],
    ],
    "what it lists and, with auto, all that it refers to": [
      { own: { [AUTO]: "true", [SECRETS]: "other" } },
      ["Secret app", "Secret db", "Secret gone", "Secret other", "ConfigMap app"],
    ],
    "what it lists, although auto is false": [{ own: { [AUTO]: "false", [SECRETS]: "other" } }, ["Secret other"]],
    "what it searches: referred to and marked": [{ own: { [SEARCH]: "true" } }, ["Secret db"]],
    "everything, by auto besides search": [{ own: { [SEARCH]: "true", [AUTO]: "true" } }, REFERRED],
    "everything except what it excludes": [
      {
        own: {
          [AUTO]: "true",
          "secrets.exclude.reloader.stakater.com/reload": "db, gone",
          "configmaps.exclude.reloader.stakater.com/reload": "app",
        },
      },
      ["Secret app"],
    ],
    "nothing that is excluded by name, although a pattern or list has it": [
      { own: { [SECRETS]: "o.*,db", "secrets.exclude.reloader.stakater.com/reload": "other,d." } },
      ["Secret db", "Secret other.tls"],
    ],
    "nothing that is marked as ignored": [
      {
        own: { [AUTO]: "true", [SECRETS]: "d." },
        present: [there("Secret", "db", "ignore"), there("ConfigMap", "app", "ignore")],
      },
      ["Secret app", "Secret gone"],
    ],
    "what the annotations of its pod template ask for": [{ pods: { [AUTO]: "true" } }, REFERRED],
    "what its own annotations ask for, not those of its pod template": [
      { own: { [SECRETS]: "other" }, pods: { [AUTO]: "true" } },
      ["Secret other", "ConfigMap app"],
    ],
    "nothing by its pod template if its own annotation says auto": [
      { own: { [AUTO]: "false" }, pods: { [AUTO]: "true" } },
      [],
    ],
    "kinds that only its pod template names": [
      { pods: { [AUTO]: "true", "secrets.exclude.reloader.stakater.com/reload": "db,gone" } },
      ["Secret app", "ConfigMap app"],
    ],
    "the Secrets of the classes that its pods mount": [
      { own: { [CLASS_AUTO]: "true" }, ...mounting },
      ["Secret api", "Secret db"],
    ],
    "the Secrets of classes too, by auto": [
      { own: { [AUTO]: "true" }, ...mounting },
      ["Secret api", "Secret app", "Secret db"],
    ],
    "the Secrets of listed classes, whether mounted or not, whether existing or not": [
      { own: { [CLASSES]: "gone, az.*" }, ...mounting },
      ["Secret api", "Secret login"],
    ],
    "nothing of a class that it excludes, or that is ignored": [
      {
        own: { [CLASSES]: "vault,azure,old", "secretproviderclasses.exclude.reloader.stakater.com/reload": "vault" },
        present: [...(mounting.present ?? []), writes("old", ["old"], "ignore")],
      },
      ["Secret api", "Secret login"],
    ],
    "no Secret that is excluded or ignored, whatever writes it": [
      {
        own: { [CLASSES]: "vault,azure", "secrets.exclude.reloader.stakater.com/reload": "api" },
        present: [...(mounting.present ?? []), there("Secret", "db", "ignore")],
      },
      ["Secret login"],
    ],
    "the Secrets of a class that it searches": [
      {
        own: { [SEARCH]: "true" },
        references: [...(mounting.references ?? []), refers("SecretProviderClass", "azure", "csi")],
        present: [writes("vault", ["db"], "match"), writes("azure", ["api"])],
      },
      ["Secret db"],
    ],
    "nothing of a class that writes nothing and is only mounted": [
      { own: { [AUTO]: "true" }, ...mounting, present: [writes("vault", [])] },
      ["Secret app"],
    ],
    "a class that writes nothing, if the configuration enables its versions": [
      { own: { [AUTO]: "true" }, ...mounting, present: [{ ...writes("vault", []), hasVersions: true }] },
      ["Secret app", "SecretProviderClass vault"],
    ],
    "a listed class that writes nothing, if the configuration enables its versions": [
      { own: { [CLASSES]: "vault" }, references: [], present: [{ ...writes("vault", []), hasVersions: true }] },
      ["SecretProviderClass vault"],
    ],
    "everything, by autoReloadAll": [{ all: true }, REFERRED],
    "nothing, by autoReloadAll for a Job without annotations": [{ all: true, kind: "Job" }, []],
    "everything, if it is a Job with auto": [{ kind: "Job", own: { [AUTO]: "true" } }, REFERRED],
    "nothing, by autoReloadAll if its auto is false": [{ all: true, own: { [AUTO]: "false" } }, []],
    "ConfigMaps, by autoReloadAll if auto is false for Secrets": [
      { all: true, own: { "secret.reloader.stakater.com/auto": "false" } },
      ["ConfigMap app"],
    ],
  };
  for (const [what, [situation, sources]] of Object.entries(cases)) {
    it(what, () => assert.deepEqual(chosen(situation), { sources, mistakes: [], minInterval: undefined }));
  }

  it("at any time, if its pause-period is on the pod template, where Reloader does not read it", () => {
    assert.equal(chosen({ own: { [SECRETS]: "db" }, pods: { [PAUSE]: "5m" } }).minInterval, undefined);
  });

  it("at most once per pause-period", () => {
    for (const [text, minInterval] of Object.entries({ "5m": "5m", "1h30m": "1h30m", "1.5m": "90000ms", "0": "0ms" })) {
      const { mistakes, ...rest } = chosen({ own: { [SECRETS]: "db", [PAUSE]: text } });
      assert.deepEqual([rest.minInterval, mistakes], [minInterval, []]);
    }
  });
});

describe("an Argo Rollout restarts by its own restart field", () => {
  const restartAt = (kind: string, own: Texts) =>
    choiceOf({ kind, namespace: "shop" }, STANDARD_VIEW.annotationsOf({ [AUTO]: "true", ...own }, {}))?.restartAt;
  it("if its annotation asks for that, and no other workload does", () => {
    assert.equal(restartAt("Rollout", { [STRATEGY]: "restart" }), true);
    assert.equal(restartAt("Rollout", { [STRATEGY]: "rollout" }), false);
    assert.equal(restartAt("Rollout", {}), false);
    assert.equal(restartAt("Deployment", { [STRATEGY]: "restart" }), false);
    const onPods = STANDARD_VIEW.annotationsOf({ [AUTO]: "true" }, { [STRATEGY]: "restart" });
    assert.equal(choiceOf({ kind: "Rollout", namespace: "shop" }, onPods)?.restartAt, false);
  });
});

describe("with other settings in the configuration,", () => {
  const WAVE = "wave.pusher.com/update-on-config-change";
  const EXTRA = "wave.pusher.com/extra-secrets";
  const wave = { annotations: { auto: WAVE, secretReload: EXTRA } };
  const cases: Record<string, [Situation, string[]]> = {
    "a custom key counts": [{ rules: wave, own: { [WAVE]: "true" } }, REFERRED],
    "a list under such a key may contain the namespace": [
      { rules: wave, own: { [EXTRA]: "shop/other, db" } },
      ["Secret db", "Secret other"],
    ],
    "Reloader's own key does not count besides": [{ rules: wave, own: { [AUTO]: "true", [SECRETS]: "db" } }, []],
    "Reloader's other keys count": [{ rules: wave, own: { [CONFIG_MAPS]: "o.*" } }, ["ConfigMap other"]],
    "no workload restarts for an ignored kind": [
      { rules: { ignoreKinds: ["Secret"] }, own: { [AUTO]: "true", [SECRETS]: "db" } },
      ["ConfigMap app"],
    ],
    "no workload restarts for an ignored kind that a class writes": [
      { rules: { ignoreKinds: ["Secret"] }, own: { [CLASS_AUTO]: "true" }, ...mounting },
      [],
    ],
    "no workload restarts for classes if they are ignored": [
      { rules: { ignoreKinds: ["SecretProviderClass"] }, own: { [AUTO]: "true" }, ...mounting },
      ["Secret app"],
    ],
  };
  for (const [what, [situation, sources]] of Object.entries(cases))
    it(what, () => assert.deepEqual([chosen(situation).sources, chosen(situation).mistakes], [sources, []]));

  it("a source without the required labels counts as ignored", () => {
    const view = new ReloaderView({ sourceSelector: { matchLabels: { tier: "app" } } });
    const match = { "reloader.stakater.com/match": "true" };
    assert.equal(view.markOfSource(match, { tier: "app" }), "match");
    assert.equal(view.markOfSource(match, { tier: "db" }), "ignore");
    assert.equal(view.markOfSource(undefined, undefined), "ignore");
    assert.equal(view.markOfSource(undefined, { tier: "app" }), undefined);
  });

  it("Reloader's record of a pause is kept if Inlay records pauses too, and is no mistake", () => {
    const noted = { "deployment.reloader.stakater.com/paused-at": "2026-11-21T10:00:00Z" };
    const rules = { recordOnWorkloads: true };
    assert.deepEqual(new ReloaderView(rules).annotationsOf(noted, {})?.own, noted);
    assert.deepEqual(chosen({ rules, own: noted }).mistakes, []);
    const own = new ReloaderView({ ...rules, annotations: { pausedAt: "example.com/paused-at" } });
    assert.equal(own.annotationsOf(noted, {}), undefined);
  });
});

describe("the mistakes in Reloader's annotations include", () => {
  const mistakes: Record<string, [Situation, RegExp]> = {
    "a boolean that is none": [
      { own: { [AUTO]: "yes" } },
      /^reloader\.stakater\.com\/auto: "yes" is neither .* write "true"$/,
    ],
    "a search that is none": [{ own: { [SEARCH]: "T" } }, /search: "T" is neither/],
    "an invalid pattern": [
      { own: { [SECRETS]: "db,a[" } },
      /secret\..*\/reload: "a\[" is not a regular expression of RE2/,
    ],
    "a pattern that is too long": [{ own: { [SECRETS]: "a?".repeat(600) } }, /is too large a regular expression/],

    "a short pattern that is a large program": [
      { own: { [SECRETS]: ".{1000}.{1000}.{1000}" } },
      /is too large a regular expression/,
    ],
    "a list that is too long": [{ own: { [SECRETS]: "db,".repeat(100) } }, /100 entries, and only the first 64 count/],
    "a pause-period that is no duration": [
      { own: { [PAUSE]: "soon" } },
      /pause-period: "soon" is not a duration; write, for example/,
    ],
    "a pause-period on a kind other than Deployment": [
      { kind: "StatefulSet", own: { [PAUSE]: "5m" } },
      /is for Deployments; remove it/,
    ],
    "a pause-period on the pod template": [
      { own: { [AUTO]: "true" }, pods: { [PAUSE]: "soon" } },
      /pause-period has no effect on the pod template; remove it there, and set it in metadata\.annotations of the Deployment$/,
    ],
    "a pause-period on the pod template of a kind other than Deployment": [
      { kind: "DaemonSet", own: { [AUTO]: "true" }, pods: { [PAUSE]: "20s" } },
      /pause-period is for Deployments; remove it from the pod template of this DaemonSet, or create a SecretBinding with minInterval/,
    ],
    "a pause-period on a DaemonSet and on its pod template": [
      { kind: "DaemonSet", own: { [AUTO]: "true", [PAUSE]: "20s" }, pods: { [PAUSE]: "20s" } },
      /pause-period is for Deployments; remove it from this DaemonSet and its pod template, or create/,
    ],
    "a strategy on the pod template": [
      { kind: "Rollout", pods: { [AUTO]: "true", [STRATEGY]: "restart" } },
      /rollout-strategy has no effect on the pod template; .* of the Rollout$/,
    ],
    "a strategy on the pod template of a kind other than Rollout": [
      { pods: { [AUTO]: "true", [STRATEGY]: "restart" } },
      /rollout-strategy has no effect on the pod template, nor on a Deployment; remove it$/,
    ],
    "an unknown strategy": [{ own: { [STRATEGY]: "now" } }, /"now" is not a strategy/],
    "an unknown key": [{ own: { "reloader.stakater.com/atuo": "true" } }, /atuo is not a known annotation/],
    "a named class that writes nothing": [
      { own: { [CLASS_AUTO]: "true" }, ...mounting, present: [writes("vault", [])] },
      /^the SecretProviderClass vault writes no Secret, .*; add spec\.secretObjects to it, or set reloader\.providerClasses /,
    ],
    "a class that a pattern lists and that writes nothing": [
      { own: { [CLASSES]: "v.*" }, present: [writes("vault", [])] },
      /vault writes no/,
    ],
    "an invalid pattern of classes": [{ own: { [CLASSES]: "a[" } }, /secretproviderclass\..*\/reload: "a\[" is no/],
    "a source in another namespace": [
      { own: { [SECRETS]: "db,bank/db", "secrets.exclude.reloader.stakater.com/reload": "shop/db" } },
      /^secret\..*\/reload: "bank\/db" is not in the namespace shop; create a SecretBinding /,
    ],
    "mistakes on the pod template": [{ pods: { [AUTO]: "yes" } }, /"yes" is neither/],
  };
  for (const [what, [situation, message]] of Object.entries(mistakes)) {
    it(what, () => {
      const { mistakes } = chosen(situation);
      assert.equal(mistakes.length, 1, mistakes.join("\n"));
      assert.match(mistakes[0] ?? "", message);
    });
  }

  it("a thousand sources in other namespaces, in nine sentences", () => {
    const { mistakes } = chosen({ own: { [SECRETS]: Array.from({ length: 1_000 }, (_, n) => `bank/db${n}`).join() } });
    assert.equal(mistakes.length, 9);
    assert.match(mistakes[8] ?? "", /\/reload: 992 more entries are not in the namespace shop$/);
  });

  it("no record that Reloader writes for itself", () => {
    const notes = {
      "reloader.stakater.com/last-reloaded-from": "{}",
      "deployment.reloader.stakater.com/paused-at": "now",
    };
    assert.deepEqual(chosen({ own: notes, pods: notes }).mistakes, []);
    assert.equal(STANDARD_VIEW.annotationsOf(notes, notes), undefined);
  });

  it("the wrong one only: the others still count", () => {
    assert.deepEqual(chosen({ own: { [SECRETS]: "a[,db" } }).sources, ["Secret db"]);
  });

  it("none of a class that is too large to be read, which is reported apart", () => {
    const large: Present = { ...there("SecretProviderClass", "vault"), isTooLarge: true };
    const choice = choiceOf(DEPLOYMENT, STANDARD_VIEW.annotationsOf({ [CLASSES]: "vault,azure" }, {})) as ReloadRules;
    const { sources, mistakes, unread } = new NamespaceSources([large, writes("azure", ["api"])]).chosen(choice, []);
    assert.deepEqual([sources, mistakes, unread], [[{ kind: "Secret", name: "api" }], [], ["vault"]]);
  });

  it("what many workloads choose by the same classes, which counts for their namespace", () => {
    const many = Array.from({ length: 100 }, (_, n) => `secret-${n}`);
    const all = new NamespaceSources([writes("vault", many)], 1_000, 250);
    const choice = choiceOf(DEPLOYMENT, STANDARD_VIEW.annotationsOf({ [CLASSES]: "vault" }, {})) as ReloadRules;
    const counts = Array.from({ length: 3 }, () => all.chosen(choice, []).sources.length);
    assert.deepEqual(counts, [100, 100, 0]);
  });

  it("too many sources, for which the workload does not restart", () => {
    const many = Array.from({ length: 257 }, (_, n) => there("Secret", `many-${n}`));
    const { sources, mistakes } = chosen({ own: { [SECRETS]: ".*" }, present: many });
    assert.deepEqual(sources, []);
    assert.match(mistakes[0] ?? "", /does not restart.* 257 sources match; list at most 256/);
  });

  it("a list that is too long, which has no effect", () => {
    const { sources, mistakes } = chosen({ own: { [SECRETS]: "a,".repeat(20_000) } });
    assert.deepEqual(sources, []);
    assert.match(mistakes[0] ?? "", /has more than 32768 characters, and has no effect; list fewer names/);
  });

  it("patterns that take too long, which is found out soon", () => {
    const long = "a".repeat(250);
    const many = Array.from({ length: 6_000 }, (_, n) => there("Secret", `${long}${n}`.slice(-253)));
    const list = Array.from({ length: 64 }, (_, n) => `(${"a?".repeat(200)}){1,${n + 2}}b`).join();
    const began = performance.now();
    const { sources, mistakes } = chosen({ own: { [SECRETS]: list }, present: many });
    assert.deepEqual(sources, []);
    assert.match(mistakes.at(-1) ?? "", /does not restart.* takes too long/);
    assert.ok(performance.now() - began < 10_000);
  });

  it("patterns that take too long for all workloads of a namespace together, which share their results", () => {
    const choiceFor = (entry: string) =>
      choiceOf(DEPLOYMENT, STANDARD_VIEW.annotationsOf({ [SECRETS]: entry }, {})) as ReloadRules;
    const names = ["aa", "ab", "ba"].map((each) => there("Secret", each));
    const all = new NamespaceSources(names, 4_000, 3_000);
    const found = (entry: string) => all.chosen(choiceFor(entry), []).sources.map(({ name }) => name);
    assert.deepEqual(found("a.*"), ["aa", "ab"]);
    assert.deepEqual(found("b.*"), ["ba"]);
    assert.match(all.chosen(choiceFor("[ab]+c?"), []).mistakes.join(), /takes too long/);
    assert.deepEqual(found("aa"), ["aa"]);
  });
});

describe("the SecretProviderClasses must be known for a workload", () => {
  const concerns = ({ own = {}, all = false, references = [] }: Situation) => {
    const choice = choiceOf(DEPLOYMENT, STANDARD_VIEW.annotationsOf(own, {}), { ...STANDARD_RULES, reloadAll: all });
    return choice !== undefined && concernsClasses(choice, references);
  };

  it("that lists some, or whose pods mount one and that restarts for them", () => {
    assert.ok(concerns({ own: { [CLASSES]: "vault" } }));
    for (const own of [{ [CLASS_AUTO]: "true" }, { [AUTO]: "true" }, { [SEARCH]: "true" }])
      assert.deepEqual([concerns({ own, ...mounting }), concerns({ own, references })], [true, false]);
    assert.ok(concerns({ all: true, ...mounting }));
  });

  it("and for no other workload", () => {
    assert.ok(!concerns({ own: { [SECRETS]: "db" }, ...mounting }));
    assert.ok(!concerns({ own: { "secret.reloader.stakater.com/auto": "true" }, ...mounting }));
    assert.ok(!concerns(mounting));
  });
});

describe("a list in Reloader's annotations", () => {
  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,10}[a-z0-9])?$/);

  it("selects its names, and those that the same regular expressions of JavaScript find", () => {
    const piece = fc.constantFrom("a", "b", ".", ".*", "[ab]", "a+", "-", "b?", "(a|b)", "\\.");
    const pattern = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 4 }), fc.uniqueArray(name, { maxLength: 20 }), (patterns, names) => {
        const found = chosen({
          own: { [SECRETS]: patterns.join(" ,") },
          references: [],
          present: names.map((each) => there("Secret", each)),
        });
        const isName = (text: string) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text);
        const expected = [
          ...patterns.filter(isName),
          ...names.filter((each) => patterns.some((one) => new RegExp(`^${one}$`).test(each))),
        ];
        assert.deepEqual(
          found.sources,
          [...new Set(expected)].sort().map((each) => `Secret ${each}`),
        );
      }),
    );
  });

  it("has the same result in every order", () => {
    fc.assert(
      fc.property(fc.array(name, { maxLength: 10 }), fc.array(name, { maxLength: 5 }), (listed, excluded) => {
        const own = (lists: string[][]) => ({
          [SECRETS]: lists[0]?.join(",") ?? "",
          "secrets.exclude.reloader.stakater.com/reload": lists[1]?.join(",") ?? "",
        });
        const once = chosen({ own: own([listed, excluded]) });
        assert.deepEqual(chosen({ own: own([listed.toReversed(), excluded.toReversed()]) }), once);
      }),
    );
  });
});

describe("the cached part of annotations", () => {
  it("has Reloader's annotations of a workload", () => {
    const own = { [AUTO]: "true", "example.com/x": "y", "notreloader.stakater.com/auto": "true", plain: "z" };
    assert.deepEqual(STANDARD_VIEW.annotationsOf(own, { [SECRETS]: "a", n: 7 }), {
      own: { [AUTO]: "true" },
      pods: { [SECRETS]: "a" },
    });
    assert.equal(STANDARD_VIEW.annotationsOf({ "example.com/x": "y" }, undefined), undefined);
  });

  it("has the mark of a source, of which ignore comes first", () => {
    const [match, ignore] = ["reloader.stakater.com/match", "reloader.stakater.com/ignore"];
    assert.equal(STANDARD_VIEW.markOf({ [match]: "true" }), "match");
    assert.equal(STANDARD_VIEW.markOf({ [ignore]: "true", [match]: "true" }), "ignore");
    assert.equal(STANDARD_VIEW.markOf({ [ignore]: "yes", [match]: "1" }), undefined);
    assert.equal(STANDARD_VIEW.markOf(undefined), undefined);
  });

  it("is enough to find the references of a real pod", () => {
    const spec = {
      containers: [{ name: "app", envFrom: [{ secretRef: { name: "a" } }] }],
      imagePullSecrets: [{ name: "b" }],
      volumes: [{ name: "v", projected: { sources: [{ configMap: { name: "c" } }] } }],
    };
    const found = chosen({ own: { [AUTO]: "true" }, references: podReferences(spec), present: [] });
    assert.deepEqual(found.sources, ["Secret a", "ConfigMap c"]);
  });
});
