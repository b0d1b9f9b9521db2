/** Reads the versions of an installation of Inlay: CRDs, admission policies and controllers. What the user may not read is said. */
import { VERSION_LABEL } from "../api/installation.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import {
  ADMISSION_POLICIES,
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  OWN_RESOURCES,
} from "../apimachinery/resources.ts";
import { compareVersions } from "../apimachinery/versions.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { RequestSender } from "../kube/transport.ts";
import { foundOr, type Reader, type Reading } from "./reading.ts";
import { type Part, section, table } from "./text.ts";

/** A version is absent if the object has no label of it. */
interface VersionedObject {
  readonly name: string;
  readonly version?: string;
}

interface InstalledController {
  readonly namespace: string;
  readonly name: string;
  readonly images: readonly string[];
}

export interface InstalledVersions {
  readonly server: string;
  readonly kubernetes: string;
  readonly crds: readonly VersionedObject[];
  readonly policies: readonly VersionedObject[];
  readonly controllers: readonly InstalledController[];
  /** What you may not read, and what does not fit together. */
  readonly notes: readonly string[];
}

const LABELS = "app.kubernetes.io/name=inlay";

/** `version` is that of this program. */
export async function installedVersions(
  { reader, transport, origin }: { reader: Reader; transport: RequestSender; origin: string },
  version: string,
): Promise<InstalledVersions> {
  const [{ gitVersion }, policies, controllers, ...crds] = await Promise.all([
    transport.request<{ gitVersion: string }>({ method: "GET", path: "/version", identity: CONTROLLER }),
    reader.list({ resource: ADMISSION_POLICIES, labels: LABELS, form: "metadata" }, versionedOf),
    reader.list({ resource: DEPLOYMENTS, labels: LABELS, form: "whole" }, controllerOf),
    ...OWN_RESOURCES.map(({ plural, group }) => {
      const ref = { resource: CUSTOM_RESOURCE_DEFINITIONS, name: `${plural}.${group}` };
      return reader.get(ref, versionedOf);
    }),
  ]);
  const found = crds.flatMap((reading) => (reading.state === "Found" ? [reading.it] : []));
  const readings: Reading<unknown>[] = [...crds, policies, controllers];
  const unreadable = readings.flatMap((reading) => (reading.state === "Unreadable" ? [reading.message] : []));
  const seen = {
    crds: found,
    policies: foundOr(policies, []),
    controllers: foundOr(controllers, []),
  };
  return { server: origin, kubernetes: gitVersion, ...seen, notes: [...unreadable, ...differences(seen, version)] };
}

const versionedOf = ({ metadata: { name, labels } }: KubeObject): VersionedObject => {
  const version = labels?.[VERSION_LABEL];
  return { name, ...(version !== undefined && { version }) };
};

function controllerOf({ metadata: { namespace = "", name }, spec }: KubeObject): InstalledController {
  const { template } = (spec ?? {}) as { template?: { spec?: { containers?: { image?: string }[] } } };
  return { namespace, name, images: (template?.spec?.containers ?? []).flatMap(({ image }) => image ?? []) };
}

/** One line for each part that has another version than this program. */
export function differences(
  { crds, policies, controllers }: Pick<InstalledVersions, "crds" | "policies" | "controllers">,
  version: string,
): string[] {
  const of = (what: string, all: readonly VersionedObject[]) => {
    const others = all.filter((each) => each.version !== version);
    if (others.length === 0) return [];
    const isNewer = others.some((each) => each.version !== undefined && compareVersions(each.version, version) > 0);
    const found = [...new Set(others.map((each) => each.version ?? "unknown"))].join(", ");
    const names = others.map(({ name }) => name).join(", ");
    const remedy = isNewer ? "use the program of their version" : "upgrade them, as docs/tasks/upgrade.md describes";
    return [`${what} of another version than this program (${version}): ${found} (${names}); ${remedy}`];
  };
  const tags = controllers.flatMap(({ namespace, name, images }) =>
    images.flatMap((image) => {
      const tag = versionIn(image);
      return tag === undefined ? [] : [{ name: `${namespace}/${name}`, version: tag }];
    }),
  );
  return [...of("CRDs", crds), ...of("admission policies", policies), ...of("controllers", tags)];
}

/** The version in the tag of an image. Other tags and digests say nothing. */
function versionIn(image: string): string | undefined {
  return /:v?(\d+\.\d+\.\d+[-.\w]*)(?:@|$)/.exec(image)?.[1];
}

/** The lines of the table. */
export function installedText({ server, kubernetes, crds, policies, controllers, notes }: InstalledVersions): Part[] {
  const rows = (all: readonly VersionedObject[]) => all.map(({ name, version = "unknown" }) => [name, version]);
  return [
    ...section("CLUSTER", table(["SERVER", "KUBERNETES"], [[server, kubernetes]])),
    ...section("CRDS", table(["NAME", "VERSION"], rows(crds))),
    ...section("ADMISSION POLICIES", table(["NAME", "VERSION"], rows(policies))),
    ...section(
      "CONTROLLERS",
      table(
        ["NAMESPACE", "NAME", "IMAGES"],
        controllers.map(({ namespace, name, images }) => [namespace, name, images.join(", ")]),
      ),
    ),
    ...section("NOTES", notes),
  ];
}
