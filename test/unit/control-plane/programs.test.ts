/** The cache of the control plane's programs, and when they are built again. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { cacheFolder, findPrograms } from "../../control-plane/programs.ts";
import { cacheKey, readRecipe, versionFlags } from "../../control-plane/recipe.ts";

describe("the cache of programs", () => {
  const recipe = { goMod: "module a", goSum: "h1:x", ldflags: "-s" };

  it("has a key of 16 hexadecimal digits that depends only on the recipe", () => {
    assert.match(cacheKey(recipe), /^[0-9a-f]{16}$/);
    assert.equal(cacheKey(recipe), cacheKey({ ...recipe }));
  });

  for (const part of ["goMod", "goSum", "ldflags"] as const) {
    it(`has another key when ${part} changes`, () => {
      assert.notEqual(cacheKey(recipe), cacheKey({ ...recipe, [part]: `${recipe[part]} ` }));
    });
  }

  it("has another key when a byte moves from go.mod to go.sum", () => {
    assert.notEqual(cacheKey({ ...recipe, goMod: "ab", goSum: "c" }), cacheKey({ ...recipe, goMod: "a", goSum: "bc" }));
  });

  it("is in INLAY_CACHE, otherwise in XDG_CACHE_HOME, otherwise in ~/.cache", () => {
    assert.equal(cacheFolder({ INLAY_CACHE: "/i", XDG_CACHE_HOME: "/x" }, "k"), "/i/control-plane/k");
    assert.equal(cacheFolder({ XDG_CACHE_HOME: "/x" }, "k"), "/x/inlay/control-plane/k");
    assert.equal(cacheFolder({ INLAY_CACHE: "" }, "k"), join(homedir(), ".cache/inlay/control-plane/k"));
  });
});

describe("the version flags", () => {
  it("contain the version that go.mod requires", () => {
    assert.equal(
      versionFlags("require (\n\tk8s.io/kubelet v0.36.3 // indirect\n\tk8s.io/kubernetes v1.36.3 // indirect\n)"),
      "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3" +
        " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
    );
  });

  it("are read from the project's own go.mod", async () => {
    const { ldflags } = await readRecipe(join(import.meta.dirname, "../../control-plane/kubernetes"));
    assert.match(ldflags, /gitVersion=v1\.\d+\.\d+ /);
  });

  it("report a go.mod that does not require k8s.io/kubernetes", () => {
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

  it("is used without a build when it has etcd and kube-apiserver", async () => {
    await put("etcd", "kube-apiserver", "kubectl");
    assert.deepEqual(await find(), {
      etcd: join(folder, "etcd"),
      apiServer: join(folder, "kube-apiserver"),
      kubectl: join(folder, "kubectl"),
    });
  });

  it("uses kubectl of the PATH when the folder has none", async () => {
    await put("etcd", "kube-apiserver");
    assert.equal((await find()).kubectl, "kubectl");
  });

  it("can also have the controllers, and KWOK with its stages", async () => {
    await put("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok");
    const { controllerManager, scheduler, kwok } = await find();
    assert.deepEqual(
      [controllerManager, scheduler, kwok],
      [join(folder, "kube-controller-manager"), join(folder, "kube-scheduler"), undefined],
    );
    await put("kwok-stages.yaml");
    assert.deepEqual((await find()).kwok, { program: join(folder, "kwok"), stages: join(folder, "kwok-stages.yaml") });
  });

  it("is refused with the name of the missing program", async () => {
    await put("kube-apiserver");
    await assert.rejects(find(), new Error(`KUBEBUILDER_ASSETS is ${folder}, which has no etcd`));
  });
});
