/** The story of samples/harbor, which `npm start` tells: a Secret's key reaches a custom resource, also when it is rotated. */
import { install } from "../test/control-plane/install.ts";
import { Api } from "../test/controller/api.ts";
import {
  apply,
  applyHarborKind,
  bold,
  chapter,
  compared,
  decoded,
  harborsIn,
  masked,
  passed,
  row,
  type Sample,
  type Stage,
  s3Of,
  say,
  sayWhatNext,
  seconds,
  showFile,
  showList,
  startController,
  untilHolds,
  waitFor,
} from "./story.ts";

const SAMPLE: Sample = { folder: "harbor", namespace: "registry", binding: "harbor-s3" };
const HARBORS = harborsIn(SAMPLE);
const SECRET = `/api/v1/namespaces/${SAMPLE.namespace}/secrets/bucket`;
const ROTATIONS = 5;

export async function tellHarbor(stage: Stage): Promise<void> {
  const cluster = await stage.startControlPlane();
  const api = new Api(cluster);
  say(bold("Inlay, on a control plane of its own"), "");
  passed("etcd, kube-apiserver, controller-manager, scheduler and KWOK are up");
  await install(cluster);
  await startController(cluster);
  passed("CRD, policies and roles are installed, and the controller runs with those rights");

  await applyHarborKind(cluster);
  await apply(cluster, SAMPLE, "00-namespace", "01-account", "02-secret", "03-harborcluster");

  chapter("1. A Secret, as a bucket's provisioner leaves it", "samples/harbor/02-secret.yaml");
  const { data } = await api.get(SECRET);
  for (const [key, value] of Object.entries<string>(data)) row(key, masked(decoded(value)));

  chapter("2. A HarborCluster: these two fields can only be written inline", "samples/harbor/03-harborcluster.yaml");
  const before = s3Of(await api.get(`${HARBORS}/harbor`));
  row("accesskey", masked(before.accesskey));
  row("regionendpoint", masked(before.regionendpoint));

  chapter("3. A SecretBinding says what belongs where", "samples/harbor/04-binding.yaml");
  await showFile(SAMPLE, "04-binding");
  const [key, host, port] = [data.accessKeyID, data.host, data.port].map(decoded);
  const [written] = await Promise.all([untilAccessKey(api, key as string), apply(cluster, SAMPLE, "04-binding")]);
  const { accesskey, regionendpoint } = s3Of(written);
  row("accesskey", compared(accesskey, key as string, "bucket's accessKeyID"));
  row("regionendpoint", compared(regionendpoint, `https://${host}:${port}`, "bucket's host and port"));
  await waitFor(cluster, SAMPLE, "condition=Ready");
  await showList(cluster, SAMPLE, "secretbindings");

  chapter("4. The access key is rotated in the Secret");
  const times: number[] = [];
  let first = "";
  for (let round = 1; round <= ROTATIONS; round++) {
    times.push(await rotate(api, round));
    first ||= seconds();
  }
  const rotated = decoded((await api.get(SECRET)).data.accessKeyID);
  row("accesskey", compared(s3Of(await api.get(`${HARBORS}/harbor`)).accesskey, rotated, "bucket's new accessKeyID"));
  const listed = times.map((ms) => ms.toFixed(0)).join(", ");
  say(`  It was in the HarborCluster ${listed} ms after the Secret was patched, in ${ROTATIONS} rotations;`);
  say(`  the first of them ${first} s after the start.`);

  sayWhatNext(
    cluster,
    [],
    [
      "kubectl describe secretbinding harbor-s3 -n registry",
      `kubectl patch secret bucket -n registry --type merge -p '{"stringData": {"accessKeyID": "AKIAEXAMPLENOTAKEY02"}}'`,
      "kubectl get harborcluster harbor -n registry -o jsonpath='{.spec.storage.spec.s3.accesskey}'",
    ],
  );
}

/** Milliseconds from the Secret's change being sent to the HarborCluster that holds the new value being seen. */
async function rotate(api: Api, round: number): Promise<number> {
  const next = `AKIAEXAMPLEROTATED0${round}`;
  const from = performance.now();
  await Promise.all([untilAccessKey(api, next), api.merge(SECRET, { stringData: { accessKeyID: next } })]);
  return performance.now() - from;
}

const untilAccessKey = (api: Api, key: string) =>
  untilHolds(api, HARBORS, (harbor) => s3Of(harbor).accesskey === key, SAMPLE);
