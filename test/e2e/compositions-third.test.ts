/** The third third of the compositions. */
import { testCompositions } from "./compositions.ts";

testCompositions(3, 3);
