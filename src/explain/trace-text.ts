/** A Trace comes in, what a person reads of it goes out, line by line. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import { fold, plain, section, table } from "./text.ts";
import type { BindingTrace, Trace, WorkloadTrace } from "./trace.ts";

export function traceText(trace: Trace): string[] {
  const { object, bindings, writers, grants, workloads, serviceAccounts, certificates, unseen } = trace;
  const { kind, namespace, name, resourceVersion, message } = object;
  const version = resourceVersion === undefined ? (message ?? "") : `version ${resourceVersion}`;
  const restarting = bindings.filter((binding) => binding.restarts.length > 0);
  const listed = (head: string[], rows: string[][]) => (rows.length === 0 ? [] : table(head, rows));
  const sections = [
    ...section(
      "READ BY BINDINGS",
      listed(["BINDING", "SOURCE", "STATE", "TARGET", "FIELD", "TAKES"], bindings.flatMap(bindingRows)),
    ),
    ...section(
      "RESTARTED BY BINDINGS",
      listed(
        ["BINDING", "WORKLOADS"],
        restarting.flatMap(({ binding, restarts }) => restarts.map((words) => [binding, words])),
      ),
    ),
    ...section(
      "WRITTEN BY BINDINGS",
      listed(
        ["BINDING", "FIELDS"],
        writers.map(({ binding, fields }) => [binding, fields.join(", ")]),
      ),
    ),
    ...section(
      "GRANTED",
      listed(
        ["GRANT", "TO"],
        grants.flatMap(({ name, from }) => from.map((to) => [name, to])),
      ),
    ),
    ...section("WORKLOADS", listed(["WORKLOAD", "REFERS BY", "KEYS", "RESTARTS"], workloads.map(workloadRow))),
    ...section(
      "PULLS IMAGES WITH IT",
      serviceAccounts.map((each) => plain(`ServiceAccount ${each}`)),
    ),
    ...section(
      "CERTIFICATE OF",
      certificates.map((each) => plain(describeObject(each.kind, each.namespace, each.name))),
    ),
  ];
  const nothing = unseen.length === 0 ? "nothing refers to it" : "nothing that you may see refers to it";
  return [
    ...fold(`${describeObject(kind, namespace, name)}, ${version}`),
    ...(sections.length === 0 ? ["", nothing] : sections),
    ...section(
      "NOT SEEN",
      unseen.flatMap((each) => fold(each)),
    ),
  ];
}

/** One line for each field, and one for a binding that takes nothing of it. */
function bindingRows({ binding, source, reason = "not looked at yet", suspended, targets }: BindingTrace): string[][] {
  const head = [binding, source, suspended ? "Suspended" : reason];
  if (targets.length === 0) return [[...head, "no field", "", ""]];
  return targets.flatMap(({ kind, object, fields }) =>
    fields.map(({ path, of }) => [...head, `${kind} ${object}`, path, of.join(", ")]),
  );
}

function workloadRow({ kind, name, by, keys, owner, restarts }: WorkloadTrace): string[] {
  const bindings = restarts.map(({ binding, suspended }) => `${binding}${suspended ? " (suspended)" : ""}`);
  const never = kind === "CronJob" ? "with its next run" : "by itself never";
  return [
    `${kind} ${name}${owner === undefined ? "" : ` of ${owner}`}`,
    by.join(", "),
    keys?.join(", ") ?? "all",
    bindings.length === 0 ? never : `by binding ${bindings.join(", ")}`,
  ];
}
