//! Named templates of the chart: YAML that lists of values become.
//!
//! Lists are read with `with` and `range`, which accept that a value is missing: an upgrade that reuses the values of an older
//! release lacks those that were added since.

/// The file below `templates`. Helm renders no object from a name with this beginning.
pub(super) const FILE: &str = "_helpers.tpl";

/// The folder of a further Ironic is the one in which the program looks for its login. The keys of Secrets are those of the
/// common ones.
pub(super) const TEXT: &str = r#"{{/* The value of IRONIC_ENDPOINTS. */}}
{{- define "metal3-rs.endpoints" -}}
{{- $all := list }}
{{- with .Values.ironic.endpoints }}{{ $all = append $all . }}{{ end }}
{{- range .Values.ironic.further }}{{ $all = append $all (printf "%s=%s" .name .endpoint) }}{{ end }}
{{- join "," $all }}
{{- end }}

{{/* Further members of a map. */}}
{{- define "metal3-rs.members" -}}
{{- with . }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The rules of ingress. Probes need none for the Node of the Pod. */}}
{{- define "metal3-rs.ingress" -}}
{{- $open := list (dict "port" "webhook-server" "from" .Values.networkPolicy.webhookFrom) (dict "port" "metrics" "from" .Values.networkPolicy.metricsFrom) }}
{{- with .Values.networkPolicy.probesFrom }}{{ $open = append $open (dict "port" "healthz" "from" .) }}{{ end }}
{{- $all := list }}
{{- range $open }}
{{- $rule := dict "ports" (list (dict "port" .port "protocol" "TCP")) }}
{{- with .from }}{{ $_ := set $rule "from" . }}{{ end }}
{{- $all = append $all $rule }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{/* Further volumes of the Pods. */}}
{{- define "metal3-rs.volumes" -}}
{{- $all := list }}
{{- range .Values.ironic.further }}
{{- $sources := list }}
{{- with .credentialsSecret }}
{{- $sources = append $sources (dict "secret" (dict "name" .)) }}
{{- end }}
{{- with .caSecret }}
{{- $items := list (dict "key" "tls.crt" "path" "ca.crt") }}
{{- $sources = append $sources (dict "secret" (dict "name" . "items" $items)) }}
{{- end }}
{{- with .clientCertificateSecret }}
{{- $items := list (dict "key" "tls.crt" "path" "tls.crt") (dict "key" "tls.key" "path" "tls.key") }}
{{- $sources = append $sources (dict "secret" (dict "name" . "items" $items)) }}
{{- end }}
{{- if $sources }}
{{- $all = append $all (dict "name" (print "further-" .name) "projected" (dict "defaultMode" 420 "sources" $sources)) }}
{{- end }}
{{- end }}
{{- range .Values.extraVolumes }}{{ $all = append $all . }}{{ end }}
{{- with $all }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Further mounts of the container. */}}
{{- define "metal3-rs.mounts" -}}
{{- $all := list }}
{{- range .Values.ironic.further }}
{{- if or .credentialsSecret .caSecret .clientCertificateSecret }}
{{- $path := print "/opt/metal3/auth/" .name }}
{{- $all = append $all (dict "name" (print "further-" .name) "mountPath" $path "readOnly" true) }}
{{- end }}
{{- end }}
{{- range .Values.extraVolumeMounts }}{{ $all = append $all . }}{{ end }}
{{- with $all }}{{ toYaml . }}{{ end }}
{{- end }}
"#;
