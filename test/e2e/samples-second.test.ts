/** The second third of the samples. */
import { testSamples } from "./samples.ts";

testSamples(2, 3);
