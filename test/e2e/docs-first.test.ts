/** The first half of the pages of docs with commands. */
import { testDocs } from "./docs.ts";

testDocs(1, 2);
