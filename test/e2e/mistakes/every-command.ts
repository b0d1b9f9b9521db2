/** Runs every command of the command line in this process, with bad files and clusters in place of good ones. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { runProgram } from "../../../src/cli/program.ts";

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** They run until a signal. test/e2e/mistakes/commands.ts has their mistakes. */
const ENDLESS = ["controller", "dev"];

/** The arguments of one way to call a command, whose files and cluster are given by `fill`. */
export interface Call {
  title: string;
  takes: { files: boolean; cluster: boolean };
  fill(file: string, kubeconfig: string): string[];
}

/** A call of every command and subcommand, with every argument and option that it requires. */
export async function callsOfEveryCommand(): Promise<Call[]> {
  const names = Object.keys(COMMANDS).filter((name) => !ENDLESS.includes(name));
  const calls = await Promise.all(
    names.map(async (name) => callsOf([name], (await COMMANDS[name]?.load()) as Command)),
  );
  return calls.flat();
}

function callsOf(words: readonly string[], command: Command): Call[] {
  if (command.commands.length > 0) return command.commands.flatMap((each) => callsOf([...words, each.name()], each));
  const values = command.registeredArguments
    .filter(({ required }) => required)
    .map(({ argChoices }) => argChoices?.[0] ?? "x");
  const valueName = (flags: string) => /[<[]([\w-]+)/.exec(flags)?.[1] ?? "";
  const isFile = (flags: string) =>
    /^-f\b/.test(flags) || (/^(file|folder)/.test(valueName(flags)) && !/--kubeconfig/.test(flags));
  const options = command.options.filter(({ flags, mandatory }) => mandatory || isFile(flags));
  const hasCluster = command.options.some(({ long }) => long === "--kubeconfig");
  const onRequest = command.options.some(({ long }) => long === "--cluster") ? ["--cluster"] : [];
  return [
    {
      title: words.join(" "),
      takes: { files: options.some(({ flags }) => isFile(flags)), cluster: hasCluster },
      fill: (file, kubeconfig) => [
        ...words,
        ...values,
        ...options.flatMap(({ flags, long, short, argChoices }) => [
          `${short ?? long}`,
          isFile(flags) ? file : (argChoices?.[0] ?? "x"),
        ]),
        ...(hasCluster ? ["--kubeconfig", kubeconfig, ...onRequest] : []),
      ],
    },
  ];
}

/** Runs the program in this process, as src/main.ts does. */
export async function run(args: readonly string[]): Promise<Ran> {
  const said = { stdout: "", stderr: "" };
  const { exitCode } = process;
  process.exitCode = undefined;
  const streams = ["stdout", "stderr"] as const;
  const writes = streams.map((name) => process[name].write);
  for (const name of streams)
    process[name].write = ((chunk: string | Uint8Array) => {
      said[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      return true;
    }) as typeof process.stdout.write;
  try {
    const code = (await runProgram([process.execPath, "inlay", ...args])) ?? process.exitCode ?? 0;
    return { code: Number(code), ...said };
  } finally {
    for (const [at, name] of streams.entries()) process[name].write = writes[at] as typeof process.stdout.write;
    process.exitCode = exitCode;
  }
}

/** Files that no command can use, with the path of each. */
export async function badFiles(folder: string, secret: string): Promise<Record<string, string>> {
  const made: Record<string, string | Uint8Array> = {
    "no YAML": `apiVersion: v1\n  kind: [\n password: ${secret}\n`,
    "a text": secret,
    "a list": `- ${secret}\n- b\n`,
    "a List with values": JSON.stringify({
      apiVersion: "v1",
      kind: "List",
      items: [secret, { apiVersion: 1, kind: [] }],
    }),
    "a foreign kind": JSON.stringify({
      apiVersion: "example.com/v1",
      kind: "Other",
      metadata: { name: "a" },
      spec: { password: secret },
    }),
    "a binary file": Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1, 0xff, ...Buffer.from(secret)]),
    "an empty file": "",
    "many documents": "---\n".repeat(1000),
    "a deep object": `a: ${"[".repeat(20_000)}${"]".repeat(20_000)}`,
    "a wrong binding": JSON.stringify({
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: { name: 1 },
      spec: secret,
    }),
  };
  const paths: Record<string, string> = {};
  for (const [at, [name, content]] of Object.entries(made).entries()) {
    paths[name] = join(folder, `${at}.yaml`);
    await writeFile(paths[name], content);
  }
  const other = {
    "a missing file": join(folder, "none.yaml"),
    "a path below a file": join(paths["a text"] ?? "", "a.yaml"),
    "a device": "/dev/zero",
  };
  return { ...paths, ...other };
}
