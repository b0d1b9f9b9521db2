/** The second third of the compositions. */
import { testCompositions } from "./compositions.ts";

testCompositions(2, 3);
