/** Flux's kustomize-controller, for `npm run test:gitops`. */
import { findGoProgram, type GoProgram } from "../../control-plane/go-program.ts";

export const flux: GoProgram = {
  name: "kustomize-controller",
  sources: import.meta.dirname,
  variable: "INLAY_TEST_FLUX",
  package: "github.com/fluxcd/kustomize-controller",
  called: "Flux's kustomize-controller",
  takes: "about 2 minutes",
  purpose: "These tests run Flux.",
};

export const fluxProgram = () => findGoProgram(flux);
