/** The third third of the pages of docs with commands. */
import { testDocs } from "./docs.ts";

testDocs(3, 3);
