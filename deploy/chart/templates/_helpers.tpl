{{- /* The image of the controller, with its digest or its tag. */ -}}
{{- define "inlay.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* The arguments of the controller, as a YAML list on one line. */ -}}
{{- define "inlay.args" -}}
{{- $args := list "controller" -}}
{{- if eq .Values.scope "Namespace" }}{{ $args = append $args (printf "--watch-namespace=%s" .Release.Namespace) }}{{ end -}}
{{- $args = concat $args (list "--leader-elect" "--health-port=8081" "--metrics-port=8443" "--config=/etc/inlay/config.yaml") -}}
{{- with .Values.log.level }}{{ $args = append $args (printf "--log-level=%s" .) }}{{ end -}}
{{- with .Values.log.format }}{{ $args = append $args (printf "--log-format=%s" .) }}{{ end -}}
{{- if has (int .Values.debugPort) (list 8081 8443) }}{{ fail "debugPort: 8081 and 8443 are the ports of /readyz and /metrics; set another port" }}{{ end -}}
{{- with .Values.debugPort }}{{ $args = append $args (printf "--debug-port=%d" (int .)) }}{{ end -}}
{{- $words := list -}}
{{- range concat $args .Values.extraArgs -}}
{{- $words = append $words (ternary . (toJson .) (regexMatch "^[-a-z][-a-zA-Z0-9=/._]*$" .)) -}}
{{- end -}}
[{{ join ", " $words }}]
{{- end -}}

{{- /*
The annotations of the pods. A new configuration restarts them, except for its section rollouts, which takes effect without a restart. The
default configuration has no annotation, as in deploy/manifests.
*/ -}}
{{- define "inlay.podAnnotations" -}}
{{- $annotations := dict -}}
{{- with omit .Values.config "rollouts" }}{{ $annotations = dict "inlay.dev/configuration" (. | toJson | sha256sum) }}{{ end -}}
{{- with merge $annotations .Values.podAnnotations }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* Binds a ClusterRole to an account of the release, in each namespace of a list, or in the cluster if a name has a wildcard. */ -}}
{{- define "inlay.bindClusterRole" -}}
{{- $isForCluster := false -}}
{{- range .namespaces }}{{ if regexMatch "[*?]" . }}{{ $isForCluster = true }}{{ end }}{{ end -}}
{{- $namespaces := ternary (list "") .namespaces $isForCluster -}}
{{- range $namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if . }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ $.role }}{{ if eq . $.home }}-here{{ end }}
  {{- with . }}
  namespace: {{ . }}
  {{- end }}
  labels: { app.kubernetes.io/name: inlay }
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $.role }}
subjects:
  - kind: ServiceAccount
    name: {{ $.account }}
    namespace: {{ $.home }}
{{- end }}
{{- end -}}

{{- /* The names of the Secrets with the URLs of the notifications. */ -}}
{{- define "inlay.notificationSecrets" -}}
{{- $names := list -}}
{{- range .Values.config.notifications }}{{ $names = append $names .url.secret.name }}{{ end -}}
{{- $names | uniq | sortAlpha | join ", " -}}
{{- end -}}

{{- /* The annotations of an object that Helm, Flux and Argo CD do not delete: with it, everything would be lost. The CRDs in apis have them too. */ -}}
{{- define "inlay.kept" -}}
helm.sh/resource-policy: keep
kustomize.toolkit.fluxcd.io/prune: disabled
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end -}}
