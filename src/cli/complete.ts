/**
 * `inlay __complete WORD…`: the candidates for the last word, in the format of Cobra, which kubectl expects of its plugins: one candidate a
 * line, with a tab and its description, and at the end a colon and a number. The scripts of `inlay completion` call it.
 */
import type { Argument, Command, Option } from "commander";
import type { NameKind } from "../explain/names.ts";
import { COMMANDS } from "./commands.ts";

interface Candidate {
  readonly value: string;
  readonly description?: string;
}

interface Completion {
  readonly candidates: readonly Candidate[];
  /** Whether the shell completes names of files instead. */
  readonly isFile: boolean;
}

/** The objects of the cluster that a word may name, with the flags of the command line so far. */
export type FindNames = (kind: NameKind, flags: { kubeconfig?: string; namespace?: string }) => Promise<string[]>;

/** The numbers of Cobra. */
const DIRECTIVE = { files: 0, noFiles: 4 };
const NOTHING: Completion = { candidates: [], isFile: false };
const HELP: Candidate = { value: "--help", description: "display help for command" };

/** The text that the shells read. A candidate is one line. */
export function completionText({ candidates, isFile }: Completion): string {
  const line = (text: string) => text.replaceAll(/\s+/g, " ");
  const lines = candidates.map(({ value, description = "" }) =>
    description === "" ? value : `${value}\t${line(description)}`,
  );
  return [...lines, `:${isFile ? DIRECTIVE.files : DIRECTIVE.noFiles}`, ""].join("\n");
}

/** Completes the last of the words that follow the name of the program. */
export async function complete(words: readonly string[], find: FindNames): Promise<Completion> {
  const current = words.at(-1) ?? "";
  const [first = "", ...before] = words.slice(0, -1);
  if (words.length <= 1 || (first === "help" && before.length === 0)) return starting(current, topLevel(words));
  const entry = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined;
  if (entry === undefined) return NOTHING;
  const line = read(await entry.load(), before);
  const [, option, prefix] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  const named = option === undefined ? undefined : optionOf(line.command, option);
  const { awaited = named } = line;
  if (awaited !== undefined) {
    const values = await valuesOf(awaited, { ...line, isConfigMap: false }, prefix ?? current, find);
    const isWhole = prefix === undefined || line.awaited !== undefined;
    return isWhole
      ? values
      : { ...values, candidates: values.candidates.map((each) => ({ ...each, value: `${option}=${each.value}` })) };
  }
  if (current.startsWith("-")) return starting(current, [...line.command.options.flatMap(flagsOf), HELP]);
  const commands = line.command.commands.map((each) => ({
    value: each.name(),
    description: each.summary() || each.description(),
  }));
  if (commands.length > 0 && line.positions === 0) return starting(current, commands);
  const { registeredArguments: all } = line.command;
  const argument = all[line.positions] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined);
  return argument === undefined ? NOTHING : valuesOf(argument, line, current, find);
}

const starting = (start: string, all: readonly Candidate[]): Completion => ({
  candidates: all.filter(({ value }) => value.startsWith(start)),
  isFile: false,
});

function topLevel(words: readonly string[]): Candidate[] {
  const commands = Object.entries(COMMANDS).map(([value, { summary }]) => ({ value, description: summary }));
  const more = [
    { value: "help", description: "display help for command" },
    HELP,
    { value: "--version", description: "print the version" },
  ];
  return words.length > 1 ? commands : [...commands, ...more];
}

/** The words between the name of the command and the word to complete. */
interface Line {
  /** The command or its subcommand. */
  readonly command: Command;
  /** The option whose value is the next word. */
  readonly awaited: Option | undefined;
  /** How many arguments there are. */
  readonly positions: number;
  readonly flags: { kubeconfig?: string; namespace?: string };
  readonly isConfigMap: boolean;
}

function read(root: Command, words: readonly string[]): Line {
  let command = root;
  let awaited: Option | undefined;
  let positions = 0;
  const flags: { kubeconfig?: string; namespace?: string } = {};
  const set = (option: Option, value: string) => {
    const name = option.attributeName();
    if (name === "kubeconfig" || name === "namespace") flags[name] = value;
  };
  for (const word of words) {
    const [, long, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
    // Bash splits --output=json into three words.
    if (word === "=" && awaited !== undefined) continue;
    if (awaited !== undefined) {
      set(awaited, word);
      awaited = undefined;
    } else if (word.startsWith("-") && word !== "-") {
      const option = optionOf(command, long ?? word);
      if (option !== undefined && value !== undefined) set(option, value);
      else if (option?.required) awaited = option;
    } else {
      const below = positions === 0 ? command.commands.find((each) => each.name() === word) : undefined;
      if (below === undefined) positions++;
      else command = below;
    }
  }
  return { command, awaited, positions, flags, isConfigMap: words.includes("--config-map") };
}

const optionOf = ({ options }: Command, flag: string): Option | undefined =>
  options.find(({ long, short }) => long === flag || short === flag);

const flagsOf = ({ hidden, long, short, description }: Option): Candidate[] =>
  hidden ? [] : [long, short].flatMap((value) => (value == null ? [] : [{ value, description }]));

/** The choices of an option or argument, else what the name of its value says: a file, or an object of the cluster. */
async function valuesOf(
  taker: Option | Argument,
  { flags, isConfigMap }: Pick<Line, "flags" | "isConfigMap">,
  start: string,
  find: FindNames,
): Promise<Completion> {
  const named = (all: readonly string[]) =>
    starting(
      start,
      all.map((value) => ({ value })),
    );
  if (taker.argChoices !== undefined) return named(taker.argChoices);
  const name = "flags" in taker ? (/[<[]([\w-]+)/.exec(taker.flags)?.[1] ?? "") : taker.name();
  if (/^(file|folder)/.test(name)) return { candidates: [], isFile: true };
  const kind = KINDS[name];
  if (kind === undefined) return NOTHING;
  return named(await find(kind === "secret" && isConfigMap ? "config-map" : kind, flags).catch(() => []));
}

/** By the name of an argument, or of the value of an option. */
const KINDS: Readonly<Record<string, NameKind>> = {
  binding: "binding",
  secret: "secret",
  object: "object",
  namespace: "namespace",
};
