/**
 * The labels and annotations of a source that no copy gets: by them, Kubernetes or another tool finds, owns or configures its objects, or
 * a tool decides what to do with a Secret. docs/reference/writing.md has the same list; a test compares the two.
 */
import { nameMatcher } from "../apimachinery/glob.ts";

export const FOREIGN_KEYS: readonly string[] = [
  "inlay.dev/*",
  // Kubernetes. Other keys of app.kubernetes.io only describe an object.
  "kubernetes.io/*",
  "kubectl.kubernetes.io/*",
  "applyset.kubernetes.io/*",
  "config.kubernetes.io/*",
  "app.kubernetes.io/instance",
  "app.kubernetes.io/managed-by",
  // Deployment tools.
  "argocd.argoproj.io/*",
  "argocd-*.argoproj.io/*",
  "*.toolkit.fluxcd.io/*",
  "helm.sh/*",
  "meta.helm.sh/*",
  "*.k14s.io/*",
  "*.cattle.io/*",
  "cli-utils.sigs.k8s.io/*",
  "config.k8s.io/*",
  "crossplane.io/*",
  "olm.*",
  "operators.coreos.com/*",
  "pulumi.com/*",
  // Tools that make, copy or read Secrets.
  "cert-manager.io/*",
  "*.cert-manager.io/*",
  "*.kyverno.io/*",
  "kyverno.io/*",
  "reflector.v1.k8s.emberstack.com/*",
  "replicator.v1.mittwald.de/*",
  "*.external-secrets.io/*",
  "secrets.hashicorp.com/*",
  "sealedsecrets.bitnami.com/*",
  "velero.io/*",
];

export const isForeign = nameMatcher(FOREIGN_KEYS);
