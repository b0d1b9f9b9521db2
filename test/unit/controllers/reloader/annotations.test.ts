/** What the annotations of Reloader come to: for which Secrets and ConfigMaps a workload restarts, and what is wrong with them. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { type ReloaderMark, ReloaderView, STANDARD_VIEW, type Texts } from "../../../../src/api/reloader.ts";
import type { ReloaderRules } from "../../../../src/api/reloader-rules.ts";
import { choiceOf, type ReloadRules, STANDARD_RULES } from "../../../../src/controllers/reloader/annotations.ts";
import { concernsClasses, type Present, There } from "../../../../src/controllers/reloader/sources.ts";
import { type PodPlace, type PodReference, podReferences } from "../../../../src/workloads/pod-references.ts";

const DEPLOYMENT = { kind: "Deployment", namespace: "shop" };
const AUTO = "reloader.stakater.com/auto";
const SEARCH = "reloader.stakater.com/search";
const PAUSE = "deployment.reloader.stakater.com/pause-period";
const SECRETS = "secret.reloader.stakater.com/reload";
const CONFIG_MAPS = "configmap.reloader.stakater.com/reload";

const refers = (kind: PodReference["kind"], name: string, place: PodPlace = "env"): PodReference => ({
  kind,
  name,
  by: place,
});
/** What the pods refer to, and what there is beside. */
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
/** Its pods mount the class `vault`, and there is another. */
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
  const found = new There(situation.present ?? present).chosen(choice, situation.references ?? references);
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
    "nothing, where it says nothing": [{}, []],
    "nothing, where it says what is not Reloader's": [{ own: { "stakater.com/auto": "true" } }, []],
    "all that its pods refer to, by auto": [{ own: { [AUTO]: "true" } }, REFERRED],
    "the same, as Go writes truths": [{ own: { [AUTO]: "T" } }, REFERRED],
    "its Secrets, by secret's auto": [{ own: { "secret.reloader.stakater.com/auto": "true" } }, SECRETS_REFERRED],
    "its ConfigMaps, by configmap's auto": [
      { own: { "configmap.reloader.stakater.com/auto": "true" } },
      ["ConfigMap app"],
    ],
    "both, by both": [
      { own: { "secret.reloader.stakater.com/auto": "true", "configmap.reloader.stakater.com/auto": "true" } },
      REFERRED,
    ],
    "what one of two is true for": [
      { own: { [AUTO]: "false", "secret.reloader.stakater.com/auto": "true" } },
      SECRETS_REFERRED,
    ],
    "nothing, by auto that is false": [{ own: { [AUTO]: "false" } }, []],
    "nothing that only logs in": [
      {
        own: { [AUTO]: "true" },
        references: [refers("Secret", "registry", "imagePullSecret"), refers("Secret", "login", "csi")],
      },
      [],
    ],
    "a Secret that logs in and is read too": [
      {
        own: { [AUTO]: "true" },
        references: [refers("Secret", "both", "imagePullSecret"), refers("Secret", "both", "volume")],
      },
      ["Secret both"],
    ],
    "what it lists, referred to or not, there or not": [
      { own: { [SECRETS]: "other, nowhere,," } },
      ["Secret nowhere", "Secret other"],
    ],
    "ConfigMaps that it lists": [{ own: { [CONFIG_MAPS]: "other" } }, ["ConfigMap other"]],
    "what there is of a pattern": [{ own: { [SECRETS]: "o.*r" } }, ["Secret other"]],
    "a name with dots, as itself and as a pattern": [
      { own: { [SECRETS]: "other.tls" }, present: [there("Secret", "other-tls")] },
      ["Secret other-tls", "Secret other.tls"],
    ],
    "no part of a name": [{ own: { [SECRETS]: "[o]ther" } }, ["Secret other"]],
    "what Reloader's anchors leave open": [{ own: { [SECRETS]: "d.|tls" } }, ["Secret db", "Secret other.tls"]],
    "what it lists and all that it refers to, by auto too": [
      { own: { [AUTO]: "true", [SECRETS]: "other" } },
      ["Secret app", "Secret db", "Secret gone", "Secret other", "ConfigMap app"],
    ],
    "what it lists, though auto is false": [{ own: { [AUTO]: "false", [SECRETS]: "other" } }, ["Secret other"]],
    "what it searches: referred to and marked": [{ own: { [SEARCH]: "true" } }, ["Secret db"]],
    "all, by auto beside search": [{ own: { [SEARCH]: "true", [AUTO]: "true" } }, REFERRED],
    "all but what it excludes": [
      {
        own: {
          [AUTO]: "true",
          "secrets.exclude.reloader.stakater.com/reload": "db, gone",
          "configmaps.exclude.reloader.stakater.com/reload": "app",
        },
      },
      ["Secret app"],
    ],
    "nothing that is excluded by its name, by a pattern or list": [
      { own: { [SECRETS]: "o.*,db", "secrets.exclude.reloader.stakater.com/reload": "other,d." } },
      ["Secret db", "Secret other.tls"],
    ],
    "nothing that is to be ignored": [
      {
        own: { [AUTO]: "true", [SECRETS]: "d." },
        present: [there("Secret", "db", "ignore"), there("ConfigMap", "app", "ignore")],
      },
      ["Secret app", "Secret gone"],
    ],
    "what its pod template says": [{ pods: { [AUTO]: "true" } }, REFERRED],
    "what itself says, not its pod template": [
      { own: { [SECRETS]: "other" }, pods: { [AUTO]: "true" } },
      ["Secret other", "ConfigMap app"],
    ],
    "nothing by its pod template where itself says auto": [{ own: { [AUTO]: "false" }, pods: { [AUTO]: "true" } }, []],
    "what its pod template leaves": [
      { pods: { [AUTO]: "true", "secrets.exclude.reloader.stakater.com/reload": "db,gone" } },
      ["Secret app", "ConfigMap app"],
    ],
    "what the classes write that its pods mount": [
      { own: { [CLASS_AUTO]: "true" }, ...mounting },
      ["Secret api", "Secret db"],
    ],
    "that too, by auto": [{ own: { [AUTO]: "true" }, ...mounting }, ["Secret api", "Secret app", "Secret db"]],
    "what the classes write that it lists, mounted or not, there or not": [
      { own: { [CLASSES]: "gone, az.*" }, ...mounting },
      ["Secret api", "Secret login"],
    ],
    "nothing of a class that it excludes, or that is to be ignored": [
      {
        own: { [CLASSES]: "vault,azure,old", "secretproviderclasses.exclude.reloader.stakater.com/reload": "vault" },
        present: [...(mounting.present ?? []), writes("old", ["old"], "ignore")],
      },
      ["Secret api", "Secret login"],
    ],
    "no Secret that is excluded or to be ignored, whatever writes it": [
      {
        own: { [CLASSES]: "vault,azure", "secrets.exclude.reloader.stakater.com/reload": "api" },
        present: [...(mounting.present ?? []), there("Secret", "db", "ignore")],
      },
      ["Secret login"],
    ],
    "what a class writes that it searches": [
      {
        own: { [SEARCH]: "true" },
        references: [...(mounting.references ?? []), refers("SecretProviderClass", "azure", "csi")],
        present: [writes("vault", ["db"], "match"), writes("azure", ["api"])],
      },
      ["Secret db"],
    ],
    "nothing of a class that writes nothing, which only happens to be mounted": [
      { own: { [AUTO]: "true" }, ...mounting, present: [writes("vault", [])] },
      ["Secret app"],
    ],
    "a class that writes nothing, where the configuration has its versions count": [
      { own: { [AUTO]: "true" }, ...mounting, present: [{ ...writes("vault", []), hasVersions: true }] },
      ["Secret app", "SecretProviderClass vault"],
    ],
    "such a class that it lists": [
      { own: { [CLASSES]: "vault" }, references: [], present: [{ ...writes("vault", []), hasVersions: true }] },
      ["SecretProviderClass vault"],
    ],
    "all, where everybody does": [{ all: true }, REFERRED],
    "nothing, where everybody does and it is a Job, which has to say so": [{ all: true, kind: "Job" }, []],
    "all, where it is a Job and says so": [{ kind: "Job", own: { [AUTO]: "true" } }, REFERRED],
    "nothing, where everybody does and it says no": [{ all: true, own: { [AUTO]: "false" } }, []],
    "ConfigMaps, where everybody does and it says no to Secrets": [
      { all: true, own: { "secret.reloader.stakater.com/auto": "false" } },
      ["ConfigMap app"],
    ],
  };
  for (const [what, [situation, sources]] of Object.entries(cases)) {
    it(what, () => assert.deepEqual(chosen(situation), { sources, mistakes: [], minInterval: undefined }));
  }

  it("at most every pause-period", () => {
    for (const [text, minInterval] of Object.entries({ "5m": "5m", "1h30m": "1h30m", "1.5m": "90000ms", "0": "0ms" })) {
      const { mistakes, ...rest } = chosen({ own: { [SECRETS]: "db", [PAUSE]: text } });
      assert.deepEqual([rest.minInterval, mistakes], [minInterval, []]);
    }
  });
});

describe("an Argo Rollout restarts by a field of its own", () => {
  const STRATEGY = "reloader.stakater.com/rollout-strategy";
  const restartAt = (kind: string, own: Texts) =>
    choiceOf({ kind, namespace: "shop" }, STANDARD_VIEW.annotationsOf({ [AUTO]: "true", ...own }, {}))?.restartAt;
  it("where it says so, and no other workload does", () => {
    assert.equal(restartAt("Rollout", { [STRATEGY]: "restart" }), true);
    assert.equal(restartAt("Rollout", { [STRATEGY]: "rollout" }), false);
    assert.equal(restartAt("Rollout", {}), false);
    assert.equal(restartAt("Deployment", { [STRATEGY]: "restart" }), false);
  });
});

describe("by the configuration,", () => {
  const WAVE = "wave.pusher.com/update-on-config-change";
  const EXTRA = "wave.pusher.com/extra-secrets";
  const wave = { annotations: { auto: WAVE, secretReload: EXTRA } };
  const cases: Record<string, [Situation, string[]]> = {
    "a key of one's own counts": [{ rules: wave, own: { [WAVE]: "true" } }, REFERRED],
    "a list under such a key may have the namespace in it": [
      { rules: wave, own: { [EXTRA]: "shop/other, db" } },
      ["Secret db", "Secret other"],
    ],
    "Reloader's own key does not count beside it": [{ rules: wave, own: { [AUTO]: "true", [SECRETS]: "db" } }, []],
    "its other keys do": [{ rules: wave, own: { [CONFIG_MAPS]: "o.*" } }, ["ConfigMap other"]],
    "nothing restarts for a kind that is ignored": [
      { rules: { ignoreKinds: ["Secret"] }, own: { [AUTO]: "true", [SECRETS]: "db" } },
      ["ConfigMap app"],
    ],
    "nor for one that a class writes": [
      { rules: { ignoreKinds: ["Secret"] }, own: { [CLASS_AUTO]: "true" }, ...mounting },
      [],
    ],
    "nothing restarts for classes, if they are ignored": [
      { rules: { ignoreKinds: ["SecretProviderClass"] }, own: { [AUTO]: "true" }, ...mounting },
      ["Secret app"],
    ],
  };
  for (const [what, [situation, sources]] of Object.entries(cases))
    it(what, () => assert.deepEqual([chosen(situation).sources, chosen(situation).mistakes], [sources, []]));

  it("a source that has not its labels is as one that says that nothing restarts for it", () => {
    const view = new ReloaderView({ sourceSelector: { matchLabels: { tier: "app" } } });
    const match = { "reloader.stakater.com/match": "true" };
    assert.equal(view.markOfSource(match, { tier: "app" }), "match");
    assert.equal(view.markOfSource(match, { tier: "db" }), "ignore");
    assert.equal(view.markOfSource(undefined, undefined), "ignore");
    assert.equal(view.markOfSource(undefined, { tier: "app" }), undefined);
  });

  it("what Reloader notes of a pause is kept where Inlay notes it too, and is no mistake", () => {
    const noted = { "deployment.reloader.stakater.com/paused-at": "2026-11-21T10:00:00Z" };
    const rules = { recordOnWorkloads: true };
    assert.deepEqual(new ReloaderView(rules).annotationsOf(noted, {})?.own, noted);
    assert.deepEqual(chosen({ rules, own: noted }).mistakes, []);
    const own = new ReloaderView({ ...rules, annotations: { pausedAt: "example.com/paused-at" } });
    assert.equal(own.annotationsOf(noted, {}), undefined);
  });
});

describe("of annotations of Reloader it is told", () => {
  const mistakes: Record<string, [Situation, RegExp]> = {
    "that a truth is none": [
      { own: { [AUTO]: "yes" } },
      /^reloader\.stakater\.com\/auto: "yes" is neither .* write "true"$/,
    ],
    "that a search is none": [{ own: { [SEARCH]: "T" } }, /search: "T" is neither/],
    "that a pattern is none": [
      { own: { [SECRETS]: "db,a[" } },
      /secret\..*\/reload: "a\[" is not a regular expression; correct/,
    ],
    "that a pattern is too long": [{ own: { [SECRETS]: "a?".repeat(600) } }, /is too large a regular expression/],

    "that a short pattern is a large program": [
      { own: { [SECRETS]: ".{1000}.{1000}.{1000}" } },
      /is too large a regular expression/,
    ],
    "that a list is too long": [{ own: { [SECRETS]: "db,".repeat(100) } }, /100 entries, and only the first 64 count/],
    "that a pause is none": [{ own: { [PAUSE]: "soon" } }, /pause-period: "soon" is no duration; write one like/],
    "that a pause is for a Deployment": [
      { kind: "StatefulSet", own: { [PAUSE]: "5m" } },
      /is for Deployments; remove it/,
    ],
    "that a strategy is none": [
      { own: { "reloader.stakater.com/rollout-strategy": "now" } },
      /"now" is not a strategy/,
    ],
    "that a key is mistyped": [{ own: { "reloader.stakater.com/atuo": "true" } }, /atuo is not known/],
    "that a class which it means writes nothing": [
      { own: { [CLASS_AUTO]: "true" }, ...mounting, present: [writes("vault", [])] },
      /^the SecretProviderClass vault writes no Secret, .*; add spec\.secretObjects to it, or set reloader\.providerClasses /,
    ],
    "the same of one that it lists": [{ own: { [CLASSES]: "v.*" }, present: [writes("vault", [])] }, /vault writes no/],
    "that a pattern of classes is none": [{ own: { [CLASSES]: "a[" } }, /secretproviderclass\..*\/reload: "a\[" is no/],
    "that a source is in another namespace": [
      { own: { [SECRETS]: "db,bank/db", "secrets.exclude.reloader.stakater.com/reload": "shop/db" } },
      /^secret\..*\/reload: "bank\/db" is not in the namespace shop; create a SecretBinding /,
    ],
    "what is wrong on the pod template": [{ pods: { [AUTO]: "yes" } }, /"yes" is neither/],
  };
  for (const [what, [situation, message]] of Object.entries(mistakes)) {
    it(what, () => {
      const { mistakes } = chosen(situation);
      assert.equal(mistakes.length, 1, mistakes.join("\n"));
      assert.match(mistakes[0] ?? "", message);
    });
  }

  it("nothing, of what Reloader notes for itself", () => {
    const notes = {
      "reloader.stakater.com/last-reloaded-from": "{}",
      "deployment.reloader.stakater.com/paused-at": "now",
    };
    assert.deepEqual(chosen({ own: notes, pods: notes }).mistakes, []);
    assert.equal(STANDARD_VIEW.annotationsOf(notes, notes), undefined);
  });

  it("that the others hold beside one that is wrong", () => {
    assert.deepEqual(chosen({ own: { [SECRETS]: "a[,db" } }).sources, ["Secret db"]);
  });

  it("that it restarts for nothing where that would be for more than can be meant", () => {
    const many = Array.from({ length: 257 }, (_, n) => there("Secret", `many-${n}`));
    const { sources, mistakes } = chosen({ own: { [SECRETS]: ".*" }, present: many });
    assert.deepEqual(sources, []);
    assert.match(mistakes[0] ?? "", /does not restart.* 257 sources match; list at most 256/);
  });

  it("the same where the patterns take too long, and soon", () => {
    const long = "a".repeat(250);
    const many = Array.from({ length: 6_000 }, (_, n) => there("Secret", `${long}${n}`.slice(-253)));
    const list = Array.from({ length: 64 }, (_, n) => `(${"a?".repeat(200)}){1,${n + 2}}b`).join();
    const began = performance.now();
    const { sources, mistakes } = chosen({ own: { [SECRETS]: list }, present: many });
    assert.deepEqual(sources, []);
    assert.match(mistakes.at(-1) ?? "", /does not restart.* takes too long/);
    assert.ok(performance.now() - began < 10_000);
  });

  it("that they do where all of the namespace take too long together, and what was looked up for one is there for all", () => {
    const choiceFor = (entry: string) =>
      choiceOf(DEPLOYMENT, STANDARD_VIEW.annotationsOf({ [SECRETS]: entry }, {})) as ReloadRules;
    const names = ["aa", "ab", "ba"].map((each) => there("Secret", each));
    const all = new There(names, 4_000, 3_000);
    const found = (entry: string) => all.chosen(choiceFor(entry), []).sources.map(({ name }) => name);
    assert.deepEqual(found("a.*"), ["aa", "ab"]);
    assert.deepEqual(found("b.*"), ["ba"]);
    assert.match(all.chosen(choiceFor("[ab]+c?"), []).mistakes.join(), /takes too long/);
    assert.deepEqual(found("aa"), ["aa"]);
  });
});

describe("which classes there are matters to a workload", () => {
  const concerns = ({ own = {}, all = false, references = [] }: Situation) => {
    const choice = choiceOf(DEPLOYMENT, STANDARD_VIEW.annotationsOf(own, {}), { ...STANDARD_RULES, reloadAll: all });
    return choice !== undefined && concernsClasses(choice, references);
  };

  it("that lists some, or whose pods mount one and that restarts for such", () => {
    assert.ok(concerns({ own: { [CLASSES]: "vault" } }));
    for (const own of [{ [CLASS_AUTO]: "true" }, { [AUTO]: "true" }, { [SEARCH]: "true" }])
      assert.deepEqual([concerns({ own, ...mounting }), concerns({ own, references })], [true, false]);
    assert.ok(concerns({ all: true, ...mounting }));
  });

  it("and to no other", () => {
    assert.ok(!concerns({ own: { [SECRETS]: "db" }, ...mounting }));
    assert.ok(!concerns({ own: { "secret.reloader.stakater.com/auto": "true" }, ...mounting }));
    assert.ok(!concerns(mounting));
  });
});

describe("a list of Reloader's", () => {
  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,10}[a-z0-9])?$/);

  it("chooses its names, and besides what JavaScript's own expressions find", () => {
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

  it("says the same in every order", () => {
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

describe("what is kept of annotations", () => {
  it("is Reloader's, on a workload", () => {
    const own = { [AUTO]: "true", "example.com/x": "y", "notreloader.stakater.com/auto": "true", plain: "z" };
    assert.deepEqual(STANDARD_VIEW.annotationsOf(own, { [SECRETS]: "a", n: 7 }), {
      own: { [AUTO]: "true" },
      pods: { [SECRETS]: "a" },
    });
    assert.equal(STANDARD_VIEW.annotationsOf({ "example.com/x": "y" }, undefined), undefined);
  });

  it("is whether it is marked, on a source; to be ignored goes first", () => {
    const [match, ignore] = ["reloader.stakater.com/match", "reloader.stakater.com/ignore"];
    assert.equal(STANDARD_VIEW.markOf({ [match]: "true" }), "match");
    assert.equal(STANDARD_VIEW.markOf({ [ignore]: "true", [match]: "true" }), "ignore");
    assert.equal(STANDARD_VIEW.markOf({ [ignore]: "yes", [match]: "1" }), undefined);
    assert.equal(STANDARD_VIEW.markOf(undefined), undefined);
  });

  it("finds the references of a real pod", () => {
    const spec = {
      containers: [{ name: "app", envFrom: [{ secretRef: { name: "a" } }] }],
      imagePullSecrets: [{ name: "b" }],
      volumes: [{ name: "v", projected: { sources: [{ configMap: { name: "c" } }] } }],
    };
    const found = chosen({ own: { [AUTO]: "true" }, references: podReferences(spec), present: [] });
    assert.deepEqual(found.sources, ["Secret a", "ConfigMap c"]);
  });
});
