/** A git server on loopback with the repositories of a test, and clones in which the test commits. */
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { freePorts } from "../control-plane/ports.ts";

const run = promisify(execFile);

/** Without the settings of the person who runs the tests. */
export const GIT_ENV = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "test",
  GIT_AUTHOR_EMAIL: "test@example.com",
  GIT_COMMITTER_NAME: "test",
  GIT_COMMITTER_EMAIL: "test@example.com",
};

/** The text of each file by its path; null removes it, or the folder with everything in it. */
export type Files = Readonly<Record<string, string | null>>;

export class GitServer {
  readonly url: string;
  readonly #folder: string;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
  }

  static async start(cluster: ControlPlane): Promise<GitServer> {
    const folder = join(cluster.folder, "git");
    await mkdir(folder);
    const [port] = await freePorts(1);
    const url = `git://127.0.0.1:${port}`;
    const served = join(folder, "served.git");
    await git(folder, "init", "--quiet", "--bare", served);
    const flags = ["--reuseaddr", "--listen=127.0.0.1", `--port=${port}`, `--base-path=${folder}`, "--export-all"];
    await cluster.run({
      name: "git-daemon",
      file: "git",
      args: ["daemon", ...flags, "--enable=receive-pack"],
      isReady: () =>
        git(folder, "ls-remote", `${url}/served.git`).then(
          () => true,
          () => false,
        ),
    });
    return new GitServer(url, folder);
  }

  /** Creates an empty repository with the branch `main`. */
  async create(name: string): Promise<Repository> {
    await git(this.#folder, "init", "--quiet", "--bare", "--initial-branch=main", `${name}.git`);
    const url = `${this.url}/${name}.git`;
    const clone = join(this.#folder, name);
    await git(this.#folder, "clone", "--quiet", url, clone);
    return new Repository(name, url, clone);
  }
}

export class Repository {
  readonly name: string;
  readonly url: string;
  /** The clone. */
  readonly folder: string;

  constructor(name: string, url: string, folder: string) {
    this.name = name;
    this.url = url;
    this.folder = folder;
  }

  /** Changes files, commits and pushes. Returns the commit. */
  async commit(files: Files): Promise<string> {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.folder, name);
      await mkdir(dirname(path), { recursive: true });
      if (text === null) await rm(path, { recursive: true });
      else await writeFile(path, text);
    }
    await git(this.folder, "add", "--all");
    await git(this.folder, "commit", "--quiet", "--message=Change");
    await git(this.folder, "push", "--quiet", "origin", "HEAD:main");
    return (await this.pushed()) as string;
  }

  /** The commit that the server has, which commands of a page may have pushed. */
  async pushed(): Promise<string | undefined> {
    const { stdout } = await git(this.folder, "ls-remote", "origin", "refs/heads/main");
    return /^[0-9a-f]{40}/.exec(stdout)?.[0];
  }

  async archive(commit: string, file: string): Promise<void> {
    await git(this.folder, "archive", "--format=tar.gz", `--output=${file}`, commit);
  }
}

function git(cwd: string, ...args: string[]) {
  return run("git", args, { cwd, env: { PATH: process.env["PATH"], HOME: cwd, ...GIT_ENV } });
}
