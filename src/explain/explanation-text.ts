/** Prints an Explanation as text. Pure. */
import { PROGRESS_TYPES } from "../api/progress.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { describeObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { verbFor } from "../sources/grant-rules.ts";
import { useInWords } from "../sources/uses.ts";
import type {
  Explanation,
  ObjectExplanation,
  ReadState,
  RolloutExplanation,
  SourceExplanation,
  TargetExplanation,
} from "./explanation.ts";
import { adviceLines, ageOf, layOut, type Part, paragraph, section, table } from "./text.ts";

/** How many workloads of a rollout are shown. Those with problems come first. */
const MAX_WORKLOADS = 20;
const MAX_NAMESPACES = 10;
const MAX_PATHS = 10;

export function explanationText(explanation: Explanation, now: number, width: number): string[] {
  const { binding, account, sources, targets, notes = [], rollout } = explanation;
  const { conditions, events, eventsUnreadable, advice } = explanation;
  const ready = conditions.find(({ type }) => type === "Ready");
  const state = ready === undefined ? "not reconciled yet" : `Ready ${ready.status}, ${ready.reason}`;
  const { generation, observedGeneration } = binding;
  const isOutdated = observedGeneration !== undefined && observedGeneration !== generation;
  const age = isOutdated
    ? ` (outdated: of generation ${observedGeneration}, the spec has generation ${generation})`
    : "";
  const { composition, claim } = binding.madeBy ?? {};
  const made = composition !== undefined && `composed by BindingComposition ${composition} for ${claim}`;
  const more = [binding.suspended && "suspended", binding.deleting && "being deleted", made];
  // Reconciling and Stalled repeat another condition.
  const conditionRows = conditions.flatMap((each) => {
    if (PROGRESS_TYPES.includes(each.type)) return [];
    const { type, status, reason, lastTransitionTime, message } = each;
    return [[type, status, reason, ageOf(lastTransitionTime, now), message]];
  });
  const eventRows = events.map(({ time, type, reason, message }) => [ageOf(time, now), type, reason, message]);
  const eventLines = table(["AGE", "TYPE", "REASON", "MESSAGE"], eventRows);
  const parts: Part[] = [
    paragraph(
      `SecretBinding ${binding.namespace}/${binding.name}: ${[state + age, ...more].filter(Boolean).join(", ")}`,
    ),
    ...section("ACCOUNT", [plain(`${account.name}  ${seenText(account)}`)]),
    ...section("SOURCES", table(["SOURCE", "OBJECT", "VERSION", "USED"], sources.flatMap(sourceRows))),
    ...targets.flatMap((target) => section(targetHeading(target), targetLines(target))),
    ...section("NOTES", notes.map(paragraph)),
    ...(rollout === undefined ? [] : section("ROLLOUT", rolloutLines(rollout, now))),
    ...section("CONDITIONS", table(["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], conditionRows)),
    ...section("EVENTS", eventsUnreadable ? [paragraph(eventsUnreadable)] : eventLines),
    ...section("WHAT TO DO", adviceLines(advice.reason === "Synced" ? "" : `${advice.reason}: `, advice)),
  ];
  return layOut(parts, width);
}

function seenText({ state, message }: ReadState): string {
  return state === "Found" ? "found" : state === "NotFound" ? "not found" : (message ?? "can't be read");
}

function sourceRows(explanation: SourceExplanation) {
  const { source, kind, namespace, name, optional, resourceVersion, uses, grants, store, ...seen } = explanation;
  const used = uses.map(({ key, present }) => {
    const what = useInWords(key);
    return present === false ? `${what} (missing)` : present === undefined ? `${what} (unknown)` : what;
  });
  const version = resourceVersion ?? `${seenText(seen)}${optional && seen.state === "NotFound" ? ", optional" : ""}`;
  const granted =
    grants?.state === "Found"
      ? [`granted by ${grants.names.join(", ")}`, grants.message ?? []].flat().join(", ")
      : (grants?.message ?? `no SecretGrant there permits this binding to ${verbFor({ kind })} it`);
  return [
    [source, describeObject(kind, namespace, name), version, used.length === 0 ? "nothing" : used.join(", ")],
    ...(store === undefined ? [] : storeLines(store).map((line) => ["", line, "", ""])),
    ...(grants === undefined ? [] : [["", granted, "", ""]]),
  ];
}

function storeLines({ product, reads, ready, version }: NonNullable<SourceExplanation["store"]>): string[] {
  const server = version === undefined ? "" : `, ${product} ${version}`;
  const why = ready?.status === "True" ? "" : `: ${ready?.message}`;
  const state = ready === undefined ? server.slice(2) : `Ready ${ready.status}, ${ready.reason}${server}${why}`;
  return [`reads ${reads}`, ...(state === "" ? [] : [state])];
}

function targetHeading({ apiVersion, kind, selects, creates, adopts, when, objects }: TargetExplanation): string {
  const [first] = objects;
  const origin = adopts === undefined ? "created by this binding" : `created or adopted (${adopts}) by this binding`;
  const words = [selects && "selected", creates && origin, when === "AfterRollout" && "after the rollout"];
  const how = words.filter((each) => each !== false);
  const what = selects || first === undefined ? kind : describeObject(kind, first.namespace, first.name);
  return plain(`TARGET ${what} (${[apiVersion, ...how].join(", ")})`);
}

function targetLines({ kind, selects, fields, objects, more, message }: TargetExplanation): Part[] {
  const from = new Map(fields.map((field) => [field.path, field.from.join(", ")]));
  return [
    ...(message === undefined ? [] : [paragraph(message)]),
    ...objects.flatMap((object) =>
      objectLines(object, from, selects ? `${describeObject(kind, object.namespace, object.name)}: ` : ""),
    ),
    ...(selects && objects.length === 0 && message === undefined
      ? ["the status of the binding lists no selected object"]
      : []),
    ...(more > 0 ? [`and ${more} more, see status.targets`] : []),
  ];
}

function objectLines(object: ObjectExplanation, from: ReadonlyMap<string, string>, subject: string): Part[] {
  const { status, fields, ...seen } = object;
  const state = [
    ...(seen.state === "Found" ? [] : [seenText(seen)]),
    status === undefined ? "no status yet" : [status.reason, status.message].filter(Boolean).join(": "),
  ];
  const rows = fields.map(({ path, held, managers }) => [
    path,
    from.get(path) ?? "",
    held ? "yes" : "no",
    managers === undefined ? "unknown" : managers.length === 0 ? "none" : managers.join(", "),
  ]);
  const { readablePaths: readable = [] } = status ?? {};
  const copies = `all users who may read it can read values of Secrets at ${firstOf(readable, MAX_PATHS)}; if you intend this, set spec.acknowledge: [ReadableCopies]`;
  return [
    paragraph(subject + state.join("; ")),
    ...(readable.length > 0 ? [paragraph(copies)] : []),
    ...table(["FIELD", "FROM", "OWNED", "MANAGERS"], rows),
  ];
}

function rolloutLines(rollout: RolloutExplanation, now: number): Part[] {
  const { suspended, restarts, revision, trackedValues, unknownNamespaces: unknown = [] } = rollout;
  const { lastStartTime: last, pending } = rollout;
  const tracked = trackedValues.length === 0 ? "nothing" : trackedValues.join(", ");
  const baseline = revision === undefined ? "no baseline yet" : `baseline: revision ${revision}, of ${tracked}`;
  const progress =
    pending === undefined
      ? "no restart is pending"
      : `pending for ${ageOf(pending.firstChangeTime, now)}: ${pending.reason}: ${pending.message}`;
  const { workloads = [] } = pending ?? {};
  const rows = mostRelevant(workloads).map((workload) => {
    const { kind, namespace, name, step = "", state, restartTime: since, message = "" } = workload;
    return [describeObject(kind, namespace, name), step, state, ageOf(since, now), message];
  });
  const more = workloads.length - rows.length;
  return [
    ...(suspended ? ["suspended: nothing is restarted"] : []),
    ...restarts.map(paragraph),
    paragraph(last === undefined ? baseline : `${baseline}; the last rollout began ${ageOf(last, now)} ago`),
    paragraph(progress),
    ...(unknown.length > 0
      ? [paragraph(`the workloads in these namespaces are unknown: ${firstOf(unknown, MAX_NAMESPACES)}`)]
      : []),
    ...table(["WORKLOAD", "STEP", "STATE", "FOR", "WAITS FOR"], rows),
    ...(more > 0 ? [`and ${more} more, see status.rollout.pending.workloads`] : []),
  ];
}

type PendingWorkloads = NonNullable<RolloutExplanation["pending"]>["workloads"];

/** Returns the workloads to show, in the order of the rollout. */
function mostRelevant(workloads: PendingWorkloads): PendingWorkloads {
  const states = ["Failed", "Rolling", "Waiting", "Done"];
  const inOrder = workloads.toSorted((a, b) => states.indexOf(a.state) - states.indexOf(b.state));
  const shown = new Set(inOrder.slice(0, MAX_WORKLOADS));
  return workloads.filter((each) => shown.has(each));
}
