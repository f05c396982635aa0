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

{{/* Further members of the ConfigMap. */}}
{{- define "metal3-rs.settings" -}}
{{- with .Values.settings }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* A rule for the port of probes, for peers other than the Node. */}}
{{- define "metal3-rs.probes" -}}
{{- $ports := list (dict "port" "healthz" "protocol" "TCP") }}
{{- with .Values.networkPolicy.probesFrom }}{{ toYaml (list (dict "from" . "ports" $ports)) }}{{ end }}
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
