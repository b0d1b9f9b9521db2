/** An Explanation comes in, what a person reads of it goes out, line by line. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import type { Explanation, ObjectSeen, RolloutSeen, Seen, SourceSeen, TargetSeen } from "./explanation.ts";
import { ageOf, fold, plain, section, table } from "./text.ts";

export function explanationText(explanation: Explanation, now: number): string[] {
  const { binding, account, sources, targets, rollout, conditions, events, eventsUnreadable, advice } = explanation;
  const ready = conditions.find(({ type }) => type === "Ready");
  const state = ready === undefined ? "not looked at yet" : `Ready ${ready.status}, ${ready.reason}`;
  const more = [binding.suspended ? "suspended" : [], binding.deleting ? "being deleted" : []].flat();
  const eventRows = events.map(({ time, type, reason, message }) => [ageOf(time, now), type, reason, message]);
  return [
    plain(`SecretBinding ${binding.namespace}/${binding.name}: ${[state, ...more].join(", ")}`),
    ...section("ACCOUNT", [plain(`${account.name}  ${seenText(account)}`)]),
    ...section("SOURCES", table(["SOURCE", "OBJECT", "VERSION", "USED"], sources.flatMap(sourceRows))),
    ...targets.flatMap((target) => section(targetHeading(target), targetLines(target))),
    ...(rollout === undefined ? [] : section("ROLLOUT", rolloutLines(rollout, now))),
    ...section(
      "CONDITIONS",
      table(
        ["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"],
        conditions.map(({ type, status, reason, lastTransitionTime, message }) => [
          type,
          status,
          reason,
          ageOf(lastTransitionTime, now),
          message,
        ]),
      ).slice(0, conditions.length === 0 ? 0 : undefined),
    ),
    ...section(
      "EVENTS",
      eventsUnreadable ? [eventsUnreadable] : events.length === 0 ? [] : table(EVENT_HEAD, eventRows),
    ),
    // A command stays in one line, to be copied.
    ...section("WHAT TO DO", [
      ...fold(advice.reason === "Synced" ? advice.message : `${advice.reason}: ${advice.message}`),
      ...(advice.command === undefined ? [] : [plain(advice.command)]),
    ]),
  ];
}

const EVENT_HEAD = ["AGE", "TYPE", "REASON", "MESSAGE"];

function seenText({ state, message }: Seen): string {
  return state === "Found" ? "found" : state === "NotFound" ? "not found" : (message ?? "can't be seen");
}

function sourceRows({ source, kind, namespace, name, optional, resourceVersion, uses, grants, ...seen }: SourceSeen) {
  const used = uses.map(({ of, present }) => {
    const what = of === "*" ? "all of it" : of;
    return present === false ? `${what} (not there)` : present === undefined ? `${what} (unknown)` : what;
  });
  const version = resourceVersion ?? `${seenText(seen)}${optional && seen.state === "NotFound" ? ", optional" : ""}`;
  const granted =
    grants === undefined
      ? []
      : grants.state === "Found"
        ? `granted by ${grants.by.join(", ")}`
        : (grants.message ?? "no SecretGrant there lets this binding read it");
  return [
    [source, describeObject(kind, namespace, name), version, used.length === 0 ? "nothing" : used.join(", ")],
    ...[granted].flat().map((line) => ["", line, "", ""]),
  ];
}

function targetHeading({ apiVersion, kind, selects, makes, objects: [first] }: TargetSeen): string {
  const how = [selects ? "selected" : [], makes ? "made by this binding" : []].flat();
  const what = selects || first === undefined ? kind : describeObject(kind, first.namespace, first.name);
  return plain(`TARGET ${what} (${[apiVersion, ...how].join(", ")})`);
}

function targetLines({ kind, selects, fields, objects, more, message }: TargetSeen): string[] {
  const from = new Map(fields.map((field) => [field.path, field.from.join(", ")]));
  return [
    ...(message === undefined ? [] : fold(message)),
    ...objects.flatMap((object) =>
      objectLines(object, from, selects ? `${describeObject(kind, object.namespace, object.name)}: ` : ""),
    ),
    ...(selects && objects.length === 0 && message === undefined
      ? ["nothing is selected, by the binding's status"]
      : []),
    ...(more > 0 ? [`and ${more} more, see status.targets`] : []),
  ];
}

function objectLines(
  { status, fields, ...seen }: ObjectSeen,
  from: ReadonlyMap<string, string>,
  subject: string,
): string[] {
  const state = [
    ...(seen.state === "Found" ? [] : [seenText(seen)]),
    status === undefined
      ? "no status yet"
      : [status.reason, ...((status.message ?? "") ? [status.message] : [])].join(": "),
  ];
  const rows = fields.map(({ path, held, managers }) => [
    path,
    from.get(path) ?? "",
    held ? "yes" : "no",
    managers === undefined ? "unknown" : managers.length === 0 ? "nobody" : managers.join(", "),
  ]);
  return [
    ...fold(subject + state.join("; ")),
    ...(rows.length === 0 ? [] : table(["FIELD", "FROM", "HELD", "MANAGERS"], rows)),
  ];
}

function rolloutLines({ suspended, restarts, revision, compares, last, pending }: RolloutSeen, now: number): string[] {
  const baseline =
    revision === undefined
      ? "no baseline yet"
      : `baseline: revision ${revision}, of ${compares.length === 0 ? "nothing" : compares.join(", ")}`;
  return [
    ...(suspended ? ["suspended: nothing is restarted"] : []),
    ...restarts.flatMap((words) => fold(words)),
    ...fold(last === undefined ? baseline : `${baseline}; the last rollout began ${ageOf(last, now)} ago`),
    ...(pending === undefined
      ? ["nothing waits to be restarted"]
      : [
          ...fold(`pending for ${ageOf(pending.since, now)}: ${pending.reason}: ${pending.message}`),
          ...table(
            ["WORKLOAD", "STEP", "STATE", "FOR", "WAITS FOR"],
            pending.workloads.map(({ kind, namespace, name, step = "", state, since, message = "" }) => [
              describeObject(kind, namespace, name),
              step,
              state,
              ageOf(since, now),
              message,
            ]),
          ),
        ]),
  ];
}
