/** What the API server was asked, by its own audit log: a place in it comes in, the requests since then go out. */
import { readFile, stat } from "node:fs/promises";

export interface AuditedRequest {
  verb: string;
  /** Group and plural, such as `goharbor.io/harborclusters`, with `/status` behind for a subresource. */
  resource: string;
  namespace: string;
  name: string;
  user: string;
  /** As whom the request was made by impersonation. */
  as: string | undefined;
  code: number;
}

interface AuditEvent {
  stage: string;
  verb: string;
  user: { username: string };
  impersonatedUser?: { username: string };
  objectRef?: { apiGroup?: string; resource?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
}

export class AuditLog {
  readonly #file: string;
  constructor(file: string) {
    this.#file = file;
  }

  /** Where the log ends now. */
  async mark(): Promise<number> {
    return (await stat(this.#file)).size;
  }

  /** Every finished request since a mark. */
  async since(mark: number): Promise<AuditedRequest[]> {
    const text = (await readFile(this.#file)).subarray(mark).toString("utf8");
    return text
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as AuditEvent)
      .map(({ verb, user, impersonatedUser, objectRef = {}, responseStatus }) => ({
        verb,
        resource: [objectRef.apiGroup, objectRef.resource, objectRef.subresource].filter(Boolean).join("/"),
        namespace: objectRef.namespace ?? "",
        name: objectRef.name ?? "",
        user: user.username,
        as: impersonatedUser?.username,
        code: responseStatus?.code ?? 0,
      }));
  }

  /** The writes since a mark that the controller made, as itself or as an account. */
  async controllerWritesSince(mark: number): Promise<AuditedRequest[]> {
    const writes = ["create", "update", "patch", "delete"];
    const reviews = "authorization.k8s.io/selfsubjectaccessreviews";
    return (await this.since(mark)).filter(
      ({ user, verb, resource }) =>
        user === "system:serviceaccount:inlay-system:inlay-controller" && writes.includes(verb) && resource !== reviews,
    );
  }
}
