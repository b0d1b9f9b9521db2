/** The fourth quarter of the compositions. */
import { testCompositions } from "./compositions.ts";

testCompositions(4, 4);
