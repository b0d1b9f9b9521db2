/** Creates the parts of the controller, adds its controllers to a manager, and starts it. Wiring only. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Installation } from "../api/installation.ts";
import { ReloaderView } from "../api/reloader.ts";
import { describeObject, type Resource, resourceName } from "../apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { BindingStore } from "../cache/binding-store.ts";
import { Informers } from "../cache/informers.ts";
import type { RestartReason } from "../cache/reflector.ts";
import { ResourceStore, type StoredObject } from "../cache/resource-store.ts";
import { AccessController } from "../controllers/access/controller.ts";
import { BindingController } from "../controllers/binding/controller.ts";
import { CompositionController } from "../controllers/composition/controller.ts";
import { InstallationController } from "../controllers/installation/controller.ts";
import { type OwnReplica, RegistrationController } from "../controllers/registration/controller.ts";
import { ReloaderController } from "../controllers/reloader/controller.ts";
import { SchemaController } from "../controllers/schemas/controller.ts";
import { VaultController } from "../controllers/vault/controller.ts";
import { requestToken } from "../kube/account-tokens.ts";
import type { ApiError } from "../kube/api-error.ts";
import { Client } from "../kube/client.ts";
import { loadCredentials } from "../kube/credentials.ts";
import { Discovery } from "../kube/discovery.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { KindDeletions } from "../kube/kind-deletions.ts";
import { ListWatch, type Scope } from "../kube/list-watch.ts";
import { LosslessClient } from "../kube/lossless-client.ts";
import { MarkPermission, RequestBudget } from "../kube/request-budget.ts";
import { Schemas } from "../kube/schemas.ts";
import { Transport } from "../kube/transport.ts";
import { WriteVersions } from "../kube/write-versions.ts";
import { Notifier } from "../notifications/notifier.ts";
import { EventRecorder } from "../observability/events.ts";
import { InstallationProblems } from "../observability/installation-problems.ts";
import { createLog, describeError, type Log, type LogFormat, type LogLevel } from "../observability/log.ts";
import { Metrics } from "../observability/metrics.ts";
import { MetricsAccess, serveMetrics } from "../observability/metrics-server.ts";
import { DigestKeys } from "../rollout/digest/keys.ts";
import { ContentionBudget } from "../targets/contention-budget.ts";
import { Rejections } from "../targets/rejections.ts";
import { VaultConnections } from "../vault/connections.ts";
import { CpuScheduler } from "../workqueue/cpu-scheduler.ts";
import { DryRun } from "./dry-run.ts";
import { LEASE_DEADLINE_MS, LeaderElection } from "./leader-election.ts";
import { type Controller, Manager, Unelected } from "./manager.ts";
import { ownVersion } from "./own-version.ts";

export interface ControllerOptions {
  /** Path to a kubeconfig file. By default as kubectl, or the pod's service account. */
  kubeconfig?: string;
  logLevel: LogLevel;
  /** By default `text` on a terminal, else `json`. */
  logFormat?: LogFormat;
  /** The limits for bindings here, independent of the permissions of their accounts. */
  installation: Installation;
  /** The port of /livez and /readyz. Without it, they are not served. */
  healthPort?: number;
  /** The port of /debug, on the loopback addresses. Without it, it is not served. */
  debugPort?: number;
  /** Serves /metrics on the health port, without encryption and to everyone. */
  insecureMetrics?: true;
  /** The port of /metrics over HTTPS, for users who may get /metrics. Without it, it is not served there. */
  metricsPort?: number;
  /** A folder with tls.crt and tls.key for the metrics port. By default, the certificate is self-signed. */
  metricsCertDir?: string;
  /** How many bindings are reconciled at the same time. */
  concurrency: number;
  /** Waits for the Lease. Otherwise this replica is the only one. */
  leaderElect: boolean;
  /** The namespace of the Lease. */
  leaseNamespace: string;
  /** The pod of this replica; by default, the pod with the host's name. */
  podName?: string;
  /** Writes nothing, and logs what would be written. */
  dryRun?: true;
  /** Called when this replica led and no longer may. Nothing is written from then on, and the process should end. */
  onLost: () => void;
}

export interface RunningController {
  /** Finishes the running reconciles, releases the lease, then ends every watch and connection. */
  stop(): Promise<void>;
}

/**
 * How many claims are reconciled at the same time, for each binding that is. A claim waits for one answer and its binding for several. With
 * equal numbers, existing bindings would delay the creation of others.
 */
const CLAIMS = 2;

/** The services that controllers are built from. */
export type Services = ReturnType<typeof servicesOf>;

/** The controllers of Inlay. Add a line for each new controller. */
export function controllersOf(services: Services, concurrency: number): Controller[] {
  const reloader = new ReloaderController(services);
  const compositions = new CompositionController(services, CLAIMS * concurrency);
  return [
    new BindingController(
      { ...services, generator: reloader, compositions, connections: [services.vault] },
      concurrency,
    ),
    reloader,
    compositions,
    new VaultController(services),
    new SchemaController(services),
    new AccessController(services),
    new RegistrationController(services),
    new InstallationController(services),
  ];
}

export async function startController(
  options: ControllerOptions,
  createControllers = controllersOf,
): Promise<RunningController> {
  const { installation, leaderElect, leaseNamespace, concurrency, insecureMetrics = false } = options;
  const { scope } = installation;
  const log = createLog(options.logLevel, options.logFormat);
  const credentials = await loadCredentials(options.kubeconfig);
  const metrics = new Metrics();
  const cpu = new CpuScheduler(undefined, () => metrics.limited("processor"));
  const reads = { cpu, ownNamespace: installation.ownNamespace, tooLarge: () => metrics.limited("answerBytes") };
  const dryRun = options.dryRun ? new DryRun(credentials, log, reads) : undefined;
  const transport = dryRun?.transport ?? new Transport(credentials, reads);
  // A separate transport, so that requests for the lease wait for no others.
  const leaseTransport = new Transport(credentials, { deadlineMs: LEASE_DEADLINE_MS });
  const leaseClient = new Client(leaseTransport);
  const candidate = { namespace: leaseNamespace, identity: `${hostname()}_${randomUUID()}` };
  const election = leaderElect ? new LeaderElection(leaseClient, candidate, log) : undefined;
  const replica = { podName: options.podName ?? hostname(), version: ownVersion() };
  const services = servicesOf(
    installation,
    transport,
    { metrics, cpu },
    () => election?.mayWrite ?? true,
    log,
    replica,
    dryRun !== undefined,
  );
  const manager = new Manager({
    ...services,
    election,
    unelected: leaderElect || dryRun ? undefined : new Unelected(leaseClient, candidate, services.problems, log),
    onLost: options.onLost,
    healthPort: options.healthPort,
    debugPort: options.debugPort,
    insecureMetrics,
    version: replica.version,
    serveMetrics: metricsServerOf(options, services, transport),
  });
  const controllers = createControllers(services, concurrency);
  // A dry run leads nothing, so it sets no labels on its pods.
  const used = dryRun === undefined ? controllers : controllers.filter(({ name }) => name !== "registration");
  for (const each of used) manager.add(dryRun?.controller(each) ?? each);
  await manager.start();
  dryRun?.start(used, () => services.informers.states);
  log.info({ server: credentials.server.href, ...(scope !== undefined && { namespace: scope }) }, "controller started");
  return {
    async stop() {
      dryRun?.stop();
      await manager.stop();
      await Promise.all([transport.close(), leaseTransport.close()]);
      log.info({}, "controller stopped");
    },
  };
}

function metricsServerOf(
  { metricsPort: port, metricsCertDir: certDir }: ControllerOptions,
  { metrics, log }: Services,
  transport: Transport,
) {
  if (port === undefined) return undefined;
  const access = new MetricsAccess(new Client(transport), log);
  const observeCertificate = metrics.observeCertificate.bind(metrics);
  return () => serveMetrics({ port, certDir, metrics, observeCertificate, access, log });
}

function servicesOf(
  installation: Installation,
  transport: Transport,
  { metrics, cpu }: { metrics: Metrics; cpu: CpuScheduler },
  mayWrite: () => boolean,
  log: Log,
  replica: OwnReplica,
  isDryRun: boolean,
) {
  const { notifications, ownNamespace, scope, reloader } = installation;
  const schemas = new Schemas(transport);
  const versions = new WriteVersions(transport, schemas, scope === undefined);
  const gate = { mayWrite, wrote: metrics.wrote };
  const requests = new RequestBudget(new MarkPermission(new Client(transport)));
  const client = new LosslessClient(requests.limit(transport), gate, versions);
  const restarted = (resource: Resource, reason: RestartReason) =>
    metrics.watchRestarted(resourceName(resource), reason);
  const failed = ({ kind }: Resource, error: ApiError) =>
    log.error({ error: describeError(error) }, `can't watch ${kind}s: ${remedyFor(error, scope)}`);
  /** For one of Inlay's own kinds. */
  const storeOf = <T extends StoredObject>(resource: Resource) =>
    new ResourceStore<T>(transport, resource, { failed, restarted }, resource.namespaced ? scope : undefined);
  return {
    installation,
    client,
    requests,
    cpu,
    requestToken: requestToken.bind(undefined, {
      transport,
      mayBeSent: mayWrite,
      loginRole: scope ? "role" : "clusterrole",
    }),
    vault: new VaultConnections(),
    serverTime: () => transport.serverTime(),
    kindDeletions: new KindDeletions(transport),
    discovery: new Discovery(transport, (resource) => versions.wholeOf(resource)),
    schemas,
    versions,
    informers: new Informers(transport, client, restarted, {
      isNamespaced: scope !== undefined,
      view: new ReloaderView(reloader),
      mostReferences: installation.limits.referencesPerWorkload,
      unread: ({ kind }, { metadata: { namespace, name } }, error) =>
        // Its message may have a value of the object.
        log.error(
          { object: describeObject(kind, namespace, name), error: (error as Error).name },
          "can't read an object, please report this",
        ),
      run: async (namespace, work) => (namespace === installation.ownNamespace ? work() : cpu.quick(namespace, work)),
    }),
    storeOf,
    listWatch: (scope: Scope) => new ListWatch(transport, CONTROLLER, scope),
    replica,
    bindings: new BindingStore(storeOf(SECRET_BINDINGS), cpu, installation.limits),
    contention: new ContentionBudget(),
    rejections: new Rejections(),
    events: new EventRecorder(client, hostname(), () => metrics.limited("events")),
    notifier: new Notifier(isDryRun ? [] : notifications, {
      client,
      ownNamespace,
      notified: metrics.notified.bind(metrics),
      log,
    }),
    digestKeys: new DigestKeys(client, ownNamespace),
    problems: new InstallationProblems(log),
    metrics,
    log,
  };
}

function remedyFor({ status }: ApiError, scope: string | undefined): string {
  if (status === 0) return "can't reach the API server; check the kubeconfig and the network";
  return scope === undefined
    ? "install the CRDs and permissions of this version of Inlay, as docs/tasks/install.md describes"
    : "install the CRDs and permissions of this version of Inlay, as deploy/namespaced/README.md describes";
}
