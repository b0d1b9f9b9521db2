/** The example samples/harbor, which `npm start` shows: a key of a Secret reaches a custom resource, also after a rotation. */
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

export async function showHarbor(stage: Stage): Promise<void> {
  const cluster = await stage.startControlPlane();
  const api = new Api(cluster);
  say(bold("Inlay on a local control plane"), "");
  passed("etcd, kube-apiserver, controller-manager, scheduler and KWOK are running");
  await install(cluster);
  await startController(cluster);
  passed("CRDs, policies and roles are installed, and the controller is running");

  await applyHarborKind(cluster);
  await apply(cluster, SAMPLE, "00-namespace", "01-account", "02-secret", "03-harborcluster");

  chapter("1. A Secret with the keys and the address of a bucket", "samples/harbor/02-secret.yaml");
  const { data } = await api.get(SECRET);
  for (const [key, value] of Object.entries<string>(data)) row(key, masked(decoded(value)));

  chapter("2. A HarborCluster, which accepts these two fields only inline", "samples/harbor/03-harborcluster.yaml");
  const before = s3Of(await api.get(`${HARBORS}/harbor`));
  row("accesskey", masked(before.accesskey));
  row("regionendpoint", masked(before.regionendpoint));

  chapter("3. A SecretBinding copies the values into the fields", "samples/harbor/04-binding.yaml");
  await showFile(SAMPLE, "04-binding");
  const [key, host, port] = [data.accessKeyID, data.host, data.port].map(decoded);
  const [written] = await Promise.all([untilAccessKey(api, key as string), apply(cluster, SAMPLE, "04-binding")]);
  const { accesskey, regionendpoint } = s3Of(written);
  row("accesskey", compared(accesskey, key as string, "accessKeyID of bucket"));
  row("regionendpoint", compared(regionendpoint, `https://${host}:${port}`, "host and port of bucket"));
  await waitFor(cluster, SAMPLE, "condition=Ready");
  await showList(cluster, SAMPLE, "secretbindings");

  chapter("4. The access key in the Secret changes");
  const times: number[] = [];
  let first = "";
  for (let round = 1; round <= ROTATIONS; round++) {
    times.push(await rotate(api, round));
    first ||= seconds();
  }
  const rotated = decoded((await api.get(SECRET)).data.accessKeyID);
  row(
    "accesskey",
    compared(s3Of(await api.get(`${HARBORS}/harbor`)).accesskey, rotated, "the new accessKeyID of bucket"),
  );
  const listed = times.map((ms) => ms.toFixed(0)).join(", ");
  say(
    `  The new key reached the HarborCluster ${listed} ms after the change of the Secret, in ${ROTATIONS} rotations.`,
  );
  say(`  The first rotation ended ${first} s after the start of this command.`);

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

/** Changes the Secret. Returns the milliseconds from sending the change until the HarborCluster has the new value. */
async function rotate(api: Api, round: number): Promise<number> {
  const next = `AKIAEXAMPLEROTATED0${round}`;
  const from = performance.now();
  await Promise.all([untilAccessKey(api, next), api.merge(SECRET, { stringData: { accessKeyID: next } })]);
  return performance.now() - from;
}

const untilAccessKey = (api: Api, key: string) =>
  untilHolds(api, HARBORS, (harbor) => s3Of(harbor).accesskey === key, SAMPLE);
