/** actionlint, which checks the workflows of .github/. */
import { findGoProgram, type GoProgram } from "../control-plane/go-program.ts";

export const actionlint: GoProgram = {
  name: "actionlint",
  sources: import.meta.dirname,
  package: "github.com/rhysd/actionlint/cmd/actionlint",
  called: "actionlint",
  takes: "some seconds",
  purpose: "This test checks the workflows with actionlint.",
};

export const actionlintProgram = () => findGoProgram(actionlint);
