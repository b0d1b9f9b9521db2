/** Argo CD, which is one program for all of its parts, for `npm run test:gitops`. */
import { findGoProgram, type GoProgram } from "../../control-plane/go-program.ts";

export const argoCd: GoProgram = {
  name: "argocd",
  sources: import.meta.dirname,
  variable: "INLAY_TEST_ARGOCD",
  package: "github.com/argoproj/argo-cd/v3/cmd",
  called: "Argo CD",
  takes: "about 5 minutes",
  purpose: "These tests run Argo CD.",
};

export const argoCdProgram = () => findGoProgram(argoCd);
