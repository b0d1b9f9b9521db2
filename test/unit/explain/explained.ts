/** The explanation of a binding without problems, for the tests of this folder. */
import type { Explanation } from "../../../src/explain/explanation.ts";

export const BINDING: Explanation["binding"] = {
  namespace: "registry",
  name: "harbor-s3",
  generation: 2,
  observedGeneration: 2,
  suspended: false,
  deleting: false,
};
