/** The third quarter of the compositions. */
import { testCompositions } from "./compositions.ts";

testCompositions(3, 4);
