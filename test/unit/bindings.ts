/** Bindings for tests that pass loosely typed data, as a user would write it; other tests use objects.ts. */
import type { SecretBinding, Status, Target } from "../../src/api/binding.ts";
import { bindingOf as complete, targetOf } from "./objects.ts";

export const bindingOf = (spec: object = {}, status?: object): SecretBinding =>
  complete({ spec: spec as Partial<SecretBinding["spec"]>, status: status as Status | undefined });

/** A target that takes a key of the source bucket. */
export const harbor = (fields?: object[]): object =>
  targetOf(fields && { fields: fields as NonNullable<Target["fields"]> });

export const KINDS = ["Deployment", "StatefulSet", "DaemonSet"];
