/** Helm, for tests of the chart and for `npm run manifests`. */
import { findGoProgram, type GoProgram } from "../control-plane/go-program.ts";

export const helm: GoProgram = {
  name: "helm",
  sources: import.meta.dirname,
  variable: "INLAY_TEST_HELM",
  package: "helm.sh/helm/v3/cmd/helm",
  called: "Helm",
  takes: "about 3 minutes",
  purpose: "Inlay's chart is rendered and installed with Helm.",
};

export const helmProgram = () => findGoProgram(helm);
