/** Mistakes in a field of a target: its path, its template, its value. */
import { accessKey, at, bucket, field, harbor, key, type Mistake, S3, template } from "./mistake.ts";

export const FIELDS: readonly Mistake[] = [
  {
    mistake: "a path with a typo",
    spec: at("spec.storge.spec.s3.accesskey"),
    reason: "UnknownField",
    says: /spec\.storge.*HarborCluster.*[Dd]id you mean (spec\.)?storage/,
  },
  {
    mistake: "a path in another case",
    spec: at(`${S3}.accessKey`),
    reason: "UnknownField",
    says: /[Dd]id you mean .*accesskey\?/,
  },
  {
    mistake: "a path without spec",
    spec: at("storage.spec.s3.accesskey"),
    reason: "UnknownField",
    says: /spec\.storage\.spec\.s3\.accesskey/,
  },
  {
    mistake: "a path of JSONPath",
    spec: at(`$.${S3}.accesskey`),
    reason: "InvalidPath",
    says: /spec\.storage\.spec\.s3/,
  },
  { mistake: "a path of jq", spec: at(`.${S3}.accesskey`), reason: "InvalidPath", says: /spec\.storage\.spec\.s3/ },
  {
    mistake: "a JSON pointer as path",
    spec: at("/spec/storage/spec/s3/accesskey"),
    reason: "InvalidPath",
    says: /spec\.storage\.spec\.s3\.accesskey/,
  },
  {
    mistake: "a path into a list without an element",
    spec: at("spec.database.spec.postgresql.hosts.host"),
    reason: "TypeMismatch",
    says: /hosts.*list.*\[INDEX\]/,
  },
  {
    mistake: "an index that the list does not have",
    spec: at("spec.database.spec.postgresql.hosts[5].host"),
    reason: "ElementNotFound",
    says: /1 element/,
  },
  {
    mistake: "an annotation without quotes",
    spec: at("metadata.annotations.example.com/key"),
    reason: "InvalidPath",
    says: /metadata\.annotations\["example\.com\/key"\]/,
  },
  { mistake: "a path in status", spec: at("status.status"), reason: "ForbiddenPath", says: /status/ },
  {
    mistake: "a path that contains another",
    spec: { sources: [bucket], targets: [harbor({ fields: [accessKey, { path: S3, from: { source: "bucket" } }] })] },
    reason: "InvalidBinding",
    says: /overlap/,
  },
  { mistake: "a text for an object", spec: at("spec.database"), reason: "TypeMismatch", says: /object.*string/ },
  {
    mistake: "all keys for a text",
    spec: {
      sources: [{ configMap: { name: "settings" } }],
      targets: [harbor({ fields: [{ path: `${S3}.accesskey`, from: { source: "settings" } }] })],
    },
    reason: "TypeMismatch",
    says: /key/,
  },
  {
    mistake: "a text for a number",
    spec: at(`${S3}.chunksize`),
    reason: "InvalidValue",
    says: /accessKeyID of Secret \S+\/bucket/,
  },
  {
    mistake: "a number below the minimum",
    spec: field({ path: `${S3}.chunksize`, from: key("port") }),
    reason: "InvalidValue",
    says: /minimum|at least/,
  },
  {
    mistake: "a text that is in no enum",
    spec: field({ path: "spec.database.spec.postgresql.sslMode", from: key("host") }),
    reason: "InvalidValue",
    says: /disable.*verify-full/,
  },
  {
    mistake: "as: integer for a text",
    spec: field({ path: `${S3}.chunksize`, from: key("accessKeyID"), as: "integer" }),
    reason: "InvalidValue",
    says: /accessKeyID.*whole number/,
  },
  {
    mistake: "a template of Go",
    spec: template("https://{{ .bucket.host }}"),
    reason: "InvalidTemplate",
    says: /\{\{bucket\.host\}\}/,
  },
  {
    mistake: "a template of a shell",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the mistake
    spec: template("https://${bucket.host}"),
    reason: "InvalidTemplate",
    says: /\{\{bucket\.host\}\}/,
  },
  {
    mistake: "a template of Kubernetes' variables",
    spec: template("https://$(bucket.host)"),
    reason: "InvalidTemplate",
    says: /\{\{bucket\.host\}\}/,
  },
  {
    mistake: "an unclosed template",
    spec: template("https://{{bucket.host"),
    reason: "InvalidTemplate",
    says: /template/,
  },
  {
    mistake: "a template with a source that does not exist",
    spec: template("{{bukcet.host}}"),
    reason: "InvalidBinding",
    says: /bukcet.*bucket/,
  },
  {
    mistake: "a template with a key only",
    spec: template("{{host}}"),
    reason: "InvalidTemplate",
    says: /\{\{bucket\.host\}\}/,
  },
  {
    mistake: "a template with a key that does not exist",
    spec: template("{{bucket.hst}}"),
    reason: "KeyNotFound",
    says: /hst.*host/,
  },
  {
    mistake: "a template with a key with dots",
    spec: template("{{bucket.tls.crt}}"),
    reason: "InvalidTemplate",
    says: /\{\{bucket\.\[tls\.crt\]\}\}/,
  },
  {
    mistake: "a template with an unknown helper",
    spec: template("{{uppercase bucket.host}}"),
    reason: "InvalidTemplate",
    says: /uppercase/,
  },
  {
    mistake: "a template with a loop",
    spec: template("{{#each bucket}}{{this}}{{/each}}"),
    reason: "InvalidTemplate",
    says: /each|block/,
  },
  {
    mistake: "a key with a typo",
    spec: field({ path: `${S3}.accesskey`, from: key("accessKeyId") }),
    reason: "KeyNotFound",
    says: /[Dd]id you mean accessKeyID\?/,
  },
  {
    mistake: "a key of something else",
    spec: field({ path: `${S3}.accesskey`, from: key("AWS_SECRET") }),
    reason: "KeyNotFound",
    says: /accessKeyID/,
  },
  {
    mistake: "bytes that are no text",
    spec: field({ path: `${S3}.accesskey`, from: key("binary") }),
    reason: "NotUtf8",
    says: /binary of Secret .*bytes|base64/,
  },
];
