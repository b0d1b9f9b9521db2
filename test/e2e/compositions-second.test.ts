/** The second quarter of the compositions. */
import { testCompositions } from "./compositions.ts";

testCompositions(2, 4);
