/** What `npm ci` installs is pinned and hashed, and runs nothing while it is installed. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "..", "..");
const REGISTRY = "https://registry.npmjs.org/";
const EXACT = /^\d+\.\d+\.\d+$/;
/** Scripts that npm runs when the package is installed. */
const ON_INSTALL = ["preinstall", "install", "postinstall"];

type Versions = Record<string, string>;
interface Manifest {
  engines?: { node: string };
  dependencies?: Versions;
  devDependencies?: Versions;
  optionalDependencies?: Versions;
  scripts?: Versions;
}
interface Locked {
  version?: string;
  resolved?: string;
  integrity?: string;
  hasInstallScript?: boolean;
  dev?: boolean;
}
interface Component {
  name: string;
  version: string;
  hashes: { alg: string }[];
  properties?: { name: string; value: string }[];
}

async function read<T>(...path: string[]): Promise<T> {
  return JSON.parse(await readFile(join(root, ...path), "utf8")) as T;
}

describe("the installed packages", () => {
  let manifest: Manifest;
  /** By folder, without Inlay itself. */
  let locked: [folder: string, Locked][];
  before(async () => {
    manifest = await read<Manifest>("package.json");
    const { packages } = await read<{ packages: Record<string, Locked> }>("package-lock.json");
    locked = Object.entries(packages).filter(([folder]) => folder !== "");
    assert.ok(locked.length > 100);
  });

  const wrong = (isWrong: (each: Locked) => boolean) =>
    locked.filter(([, each]) => isWrong(each)).map(([folder]) => folder);

  it("are named by exact versions, which the lockfile has", () => {
    const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = manifest;
    const named = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
    const versions = new Map(locked.map(([folder, { version }]) => [folder, version]));
    const loose = named.filter(
      ([name, version]) => !EXACT.test(version) || versions.get(`node_modules/${name}`) !== version,
    );
    assert.deepEqual(loose, []);
  });

  it("install with Node 20 without a warning, because scripts bring their own Node", async () => {
    // `npm run` passes its own level on.
    const { npm_config_loglevel: _, ...env } = process.env;
    const { stdout } = await promisify(execFile)("npm", ["config", "get", "loglevel"], { cwd: root, env });
    assert.deepEqual([manifest.engines?.node, stdout.trim()], [">=20", "error"]);
  });

  it("are locked to one content each, and not to an address", () => {
    const isLoose = ({ integrity = "", resolved = REGISTRY }: Locked) =>
      !/^sha512-[\w+/]{86}==$/.test(integrity) || !resolved.startsWith(REGISTRY);
    assert.deepEqual(wrong(isLoose), []);
  });

  it("run nothing while they are installed, according to the lockfile and the installed files", async () => {
    assert.deepEqual(
      wrong(({ hasInstallScript }) => hasInstallScript === true),
      [],
    );
    const running: string[] = [];
    let seen = 0;
    for (const [folder] of locked) {
      // Packages for other machines are not installed.
      if (!existsSync(join(root, folder, "package.json"))) continue;
      seen += 1;
      const { scripts = {} } = await read<Manifest>(folder, "package.json");
      // npm runs node-gyp for a package with this file.
      const isBuilt = existsSync(join(root, folder, "binding.gyp"));
      if (isBuilt || ON_INSTALL.some((script) => script in scripts)) running.push(folder);
    }
    assert.ok(seen > 100);
    assert.deepEqual(running, []);
  });

  it("are in the bill of materials, each with its hash, and development packages are marked", async () => {
    const { stdout } = await promisify(execFile)("npm", ["run", "--silent", "sbom"], { cwd: root, maxBuffer: 2 ** 26 });
    const { bomFormat, components } = JSON.parse(stdout) as { bomFormat: string; components: Component[] };
    assert.equal(bomFormat, "CycloneDX");
    const isForDevelopment = ({ properties = [] }: Component) =>
      properties.some(({ name, value }) => name === "cdx:npm:package:development" && value === "true");
    const deps = components.map((each) => `${each.name}@${each.version} ${isForDevelopment(each)}`);
    const expected = locked.map(([folder, { version, dev = false }]) => `${nameIn(folder)}@${version} ${dev}`);
    assert.deepEqual([...new Set(deps)].sort(), [...new Set(expected)].sort());
    assert.deepEqual(
      components.filter(({ hashes }) => hashes[0]?.alg !== "SHA-512"),
      [],
    );
  });
});

const nameIn = (folder: string) => folder.replace(/^.*node_modules\//, "");
