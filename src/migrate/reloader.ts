/** Says which annotations of Stakater Reloader Inlay uses as they are, and which it does not. Converts nothing. Pure. */
import { STANDARD_VIEW } from "../api/reloader.ts";
import { RELOADER_KEYS, RELOADER_KINDS } from "../api/reloader-rules.ts";
import { fieldsAt } from "../apimachinery/fields.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { choiceOf } from "../controllers/reloader/annotations.ts";
import { describe, type Input, type Output, type Tool } from "./migration.ts";

const WHAT_TO_DO =
  "Reloader's annotations work as they are, so there is nothing to convert. Enable them with config.reloader in the Helm chart, or reloader in the configuration, and stop Reloader: docs/tasks/move-over-from-another-tool.md#stakater-reloader. compositions/reloader/README.md lists its annotations and flags.";
const OF_RELOADER = /^(?:[^/]+\.)?reloader\.stakater\.com\//;
const MARKS: readonly string[] = [RELOADER_KEYS.match, RELOADER_KEYS.ignore];
const CLASSES: readonly string[] = [
  RELOADER_KEYS.secretProviderClassAuto,
  RELOADER_KEYS.secretProviderClassReload,
  RELOADER_KEYS.secretProviderClassExclude,
];

export const RELOADER: Tool = {
  title: "Reloader",
  objects: "objects with annotations of reloader.stakater.com",
  owns: (object) => Object.keys({ ...annotationsOf(object), ...podAnnotationsOf(object) }).some(isOfReloader),
  convert(inputs, output) {
    output.remark(WHAT_TO_DO);
    for (const input of inputs) explain(input, output);
  },
};

const isOfReloader = (key: string): boolean => OF_RELOADER.test(key);
const annotationsOf = (object: unknown): JsonObject => fieldsAt(object, "metadata", "annotations");

const podSteps = (kind: unknown): string[] =>
  kind === "CronJob" ? ["spec", "jobTemplate", "spec", "template"] : ["spec", "template"];
const podAnnotationsOf = (object: unknown): JsonObject =>
  fieldsAt(object, ...podSteps(fieldsAt(object)["kind"]), "metadata", "annotations");

function explain(input: Input, output: Output): void {
  const { root, kind, namespace } = input;
  const object = root.take();
  const [own, pods] = [annotationsOf(object), podAnnotationsOf(object)];
  const annotations = root.field("metadata", "annotations");
  const ofPods = root.field(...podSteps(kind), "metadata", "annotations");
  if (isIn(RELOADER_KINDS.workloads, kind)) {
    const found = STANDARD_VIEW.annotationsOf(own, pods);
    const mistakes = choiceOf({ kind, namespace }, found)?.mistakes ?? [];
    const place = Object.keys(own).some(isOfReloader) ? annotations : ofPods;
    for (const mistake of mistakes) place.lose(mistake);
    remark(input, { ...found?.pods, ...found?.own }, output);
  } else if (kind === "Secret" || kind === "ConfigMap") {
    for (const key of Object.keys(own).filter(isOfReloader))
      if (!MARKS.includes(key)) annotations.field(key).lose(`has no effect on a ${kind}; write it on the workload`);
    remark(input, Object.fromEntries(Object.entries(own).filter(([key]) => MARKS.includes(key))), output);
  } else
    root.lose(
      `Inlay restarts ${RELOADER_KINDS.workloads.join(", ")} by annotations; for this ${kind}, write a SecretBinding with rollout.targets`,
    );
}

const isIn = (list: readonly string[], text: string): boolean => list.includes(text);

function remark(input: Input, used: JsonObject, output: Output): void {
  const known: readonly string[] = Object.values(RELOADER_KEYS);
  const texts = Object.entries(used).filter(([key]) => known.includes(key));
  if (texts.length === 0) return;
  const options = [
    input.kind === "Job" ? "with jobs: true" : "",
    texts.some(([key]) => CLASSES.includes(key)) ? "with providerClasses: true for classes that write no Secret" : "",
  ].filter((each) => each !== "");
  const hint = options.length > 0 ? ` (${options.join(", ")})` : "";
  output.remark(
    `${describe(input)}: Inlay reads ${texts.map(([key, text]) => `${key}: ${String(text)}`).join(", ")}${hint}`,
  );
}
