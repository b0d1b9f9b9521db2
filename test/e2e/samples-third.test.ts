/** The third third of the samples. */
import { testSamples } from "./samples.ts";

testSamples(3, 3);
