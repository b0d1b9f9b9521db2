#!/usr/bin/env node
/** The entry point: the version of Node, pipes that close early, and the exit code. */
import { runProgram } from "./cli/program.ts";

const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 24) {
  console.error(`inlay needs Node 24 or later; this is Node ${process.versions.node}`);
  process.exit(1);
}
// A reader that needs no more, such as head, is no failure.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(process.exitCode);
    throw error;
  });
const code = await runProgram(process.argv);
if (code !== undefined) process.exit(code);
