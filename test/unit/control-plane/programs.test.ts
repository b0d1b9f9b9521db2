/** Where the control plane's programs are looked for, and when they must be built anew. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { cacheFolder, findPrograms } from "../../control-plane/programs.ts";
import { cacheKey, readRecipe, versionFlags } from "../../control-plane/recipe.ts";

describe("the cache of programs", () => {
  const recipe = { goMod: "module a", goSum: "h1:x", ldflags: "-s" };

  it("has a key of 16 hexadecimal digits that the recipe alone decides", () => {
    assert.match(cacheKey(recipe), /^[0-9a-f]{16}$/);
    assert.equal(cacheKey(recipe), cacheKey({ ...recipe }));
  });

  for (const part of ["goMod", "goSum", "ldflags"] as const) {
    it(`has another key when ${part} changes`, () => {
      assert.notEqual(cacheKey(recipe), cacheKey({ ...recipe, [part]: `${recipe[part]} ` }));
    });
  }

  it("does not take a byte that moves from go.mod to go.sum for the same recipe", () => {
    assert.notEqual(cacheKey({ ...recipe, goMod: "ab", goSum: "c" }), cacheKey({ ...recipe, goMod: "a", goSum: "bc" }));
  });

  it("lies in INLAY_CACHE, else in XDG_CACHE_HOME, else in ~/.cache", () => {
    assert.equal(cacheFolder({ INLAY_CACHE: "/i", XDG_CACHE_HOME: "/x" }, "k"), "/i/control-plane/k");
    assert.equal(cacheFolder({ XDG_CACHE_HOME: "/x" }, "k"), "/x/inlay/control-plane/k");
    assert.equal(cacheFolder({ INLAY_CACHE: "" }, "k"), join(homedir(), ".cache/inlay/control-plane/k"));
  });
});

describe("the version flags", () => {
  it("stamp the version that go.mod requires", () => {
    assert.equal(
      versionFlags("require (\n\tk8s.io/kubelet v0.36.3 // indirect\n\tk8s.io/kubernetes v1.36.3 // indirect\n)"),
      "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3" +
        " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
    );
  });

  it("can be told from the project's own go.mod", async () => {
    const { ldflags } = await readRecipe(join(import.meta.dirname, "../../control-plane/kubernetes"));
    assert.match(ldflags, /gitVersion=v1\.\d+\.\d+ /);
  });

  it("need k8s.io/kubernetes to be required", () => {
    assert.throws(() => versionFlags("module a"), /does not require k8s\.io\/kubernetes/);
  });
});

describe("KUBEBUILDER_ASSETS", () => {
  let folder: string;
  const put = (...names: string[]) => Promise.all(names.map((name) => writeFile(join(folder, name), "")));
  const find = () => findPrograms({ KUBEBUILDER_ASSETS: folder });

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-assets-"));
  });
  afterEach(async () => await rm(folder, { recursive: true }));

  it("is used as it is when it has etcd and kube-apiserver", async () => {
    await put("etcd", "kube-apiserver", "kubectl");
    assert.deepEqual(await find(), {
      etcd: join(folder, "etcd"),
      apiServer: join(folder, "kube-apiserver"),
      kubectl: join(folder, "kubectl"),
    });
  });

  it("leaves kubectl to the PATH when it has none", async () => {
    await put("etcd", "kube-apiserver");
    assert.equal((await find()).kubectl, "kubectl");
  });

  it("may have the controllers too, KWOK with its stages", async () => {
    await put("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok");
    const { controllerManager, scheduler, kwok } = await find();
    assert.deepEqual(
      [controllerManager, scheduler, kwok],
      [join(folder, "kube-controller-manager"), join(folder, "kube-scheduler"), undefined],
    );
    await put("kwok-stages.yaml");
    assert.deepEqual((await find()).kwok, { program: join(folder, "kwok"), stages: join(folder, "kwok-stages.yaml") });
  });

  it("is refused by name when a program is absent", async () => {
    await put("kube-apiserver");
    await assert.rejects(find(), new Error(`KUBEBUILDER_ASSETS is ${folder}, which has no etcd`));
  });
});
