/** Prints a Trace as text. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { layOut, paragraph, section, table } from "./text.ts";
import type { BindingTrace, Trace, WorkloadTrace } from "./trace-result.ts";

export function traceText(trace: Trace, width: number): string[] {
  const { object, bindings, writers, grants, workloads, serviceAccounts, certificates, connections, unreadable } =
    trace;
  const { kind, namespace, name, state, resourceVersion, message } = object;
  const missing = "does not exist. These objects refer to it, and wait for it unless it is optional:";
  const seen = resourceVersion === undefined ? `, ${message ?? ""}` : `, version ${resourceVersion}`;
  const read = bindings.flatMap(bindingRows);
  const restarted = bindings.flatMap(({ binding, restarts }) => restarts.map((words) => [binding, words]));
  const written = writers.map(({ binding, fields }) => [binding, fields.join(", ")]);
  const granted = grants.flatMap(({ name, from }) => from.map((to) => [name, to]));
  const pulling = serviceAccounts.map((each) => plain(`ServiceAccount ${each}`));
  const certified = certificates.map((each) => plain(describeObject(each.kind, each.namespace, each.name)));
  const connected = connections.map(({ kind, name, uses }) => [`${kind} ${name}`, uses.join(", ")]);
  const sections = [
    ...section("READ BY BINDINGS", table(["BINDING", "SOURCE", "STATE", "TARGET", "FIELD", "USES"], read)),
    ...section("RESTARTED BY BINDINGS", table(["BINDING", "WORKLOADS"], restarted)),
    ...section("WRITTEN BY BINDINGS", table(["BINDING", "FIELDS"], written)),
    ...section("GRANTED", table(["GRANT", "TO"], granted)),
    ...section("WORKLOADS", table(["WORKLOAD", "REFERS BY", "KEYS", "RESTARTS"], workloads.map(workloadRow))),
    ...section("USED TO PULL IMAGES", pulling),
    ...section("CERTIFICATE OF", certified),
    ...section("USED BY CONNECTIONS", table(["CONNECTION", "USES IT AS"], connected)),
  ];
  const nothing = unreadable.length === 0 ? "nothing refers to it" : "nothing that you may read refers to it";
  const parts = [
    paragraph(describeObject(kind, namespace, name) + (state === "NotFound" ? ` ${missing}` : seen)),
    ...(sections.length === 0 ? ["", nothing] : sections),
    ...section("NOT READ", unreadable.map(paragraph)),
  ];
  return layOut(parts, width);
}

/** One row for each field, and one row for a binding without a field that uses it. */
function bindingRows({ binding, source, reason = "not reconciled yet", suspended, targets }: BindingTrace): string[][] {
  const head = [binding, source, suspended ? "Suspended" : reason];
  if (targets.length === 0) return [[...head, "no field", "", ""]];
  return targets.flatMap(({ kind, object, fields }) =>
    fields.map(({ path, keys }) => [...head, `${kind} ${object}`, path, keys.join(", ")]),
  );
}

function workloadRow(workload: WorkloadTrace): string[] {
  const { kind, namespace, name, copy, references, keys, owner, restarts } = workload;
  const bindings = restarts.map(({ binding, suspended }) => `${binding}${suspended ? " (suspended)" : ""}`);
  const never = kind === "CronJob" ? "at its next run" : "not by Inlay";
  return [
    `${describeObject(kind, namespace, name)}${owner === undefined ? "" : ` of ${owner}`}`,
    `${references.join(", ")}${copy === undefined ? "" : ` of ${describeObject(copy.kind, undefined, copy.name)}`}`,
    keys?.join(", ") ?? "all",
    bindings.length === 0 ? never : `by binding ${bindings.join(", ")}`,
  ];
}
