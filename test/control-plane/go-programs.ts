/** The Go programs that tests use, in the order in which a run builds them: those that build fast first. */
import { actionlint } from "../actionlint/program.ts";
import { tools } from "../gitops/tools.ts";
import { argoCd } from "../gitops-controllers/argocd/program.ts";
import { flux } from "../gitops-controllers/flux/program.ts";
import { helm } from "../helm/program.ts";
import { oracle } from "../oracle/oracle.ts";
import { promql } from "../promql/promql.ts";
import type { GoProgram } from "./go-program.ts";
import { vault } from "./vault/program.ts";

export const GO_PROGRAMS: readonly GoProgram[] = [actionlint, oracle, promql, tools, flux, helm, vault, argoCd];
