//! Objects that values add, and which the components lack.

use metal3_domain::yaml;
use metal3_runtime::guard;
use serde_json::{Value, json};

use super::slots::NAMESPACE;
use crate::release::form::Form;
use crate::release::monitoring;

/// Printed after `helm install`.
pub(super) const NOTES: &str = "\
capm3 runs in namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/metal3-controller-manager

The Pods meet the Pod Security Standard `restricted`. Enforce it for the namespace:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted

A Pod that is not ready says why in its log. `helm uninstall` leaves the definitions, and with them every object.
";

/// Kind and template of each of them.
pub(super) fn templates() -> Vec<(&'static str, String)> {
    let monitor = ".Values.serviceMonitor.enabled";
    let mut all = vec![
        ("Service", when(monitor, &service())),
        (
            "ClusterRole",
            when(
                "or .Values.serviceMonitor.enabled .Values.podMonitor.enabled",
                &reader(),
            ),
        ),
        ("PodMonitor", pod_monitor()),
        (
            "ServiceMonitor",
            labelled(&when(monitor, &service_monitor()), "serviceMonitor"),
        ),
        ("PrometheusRule", rules()),
        (
            "ConfigMap",
            labelled(
                &when(".Values.dashboards.enabled", &monitoring::config_map(NAMESPACE)),
                "dashboards",
            ),
        ),
    ];
    all.extend([
        (
            "Secret",
            secret(
                "and .Values.products.hosts .Values.ironic.password",
                "credentials",
                &[
                    ("password", ".Values.ironic.password"),
                    ("username", ".Values.ironic.username"),
                ],
            ),
        ),
        (
            "Secret",
            secret(
                "and .Values.products.hosts .Values.ironic.ca",
                "ca",
                &[("tls.crt", ".Values.ironic.ca")],
            ),
        ),
    ]);
    all
}

/// The rules of alerts. What stands before the path of a runbook is a value.
fn rules() -> String {
    let text = when(".Values.prometheusRule.enabled", &monitoring::rule(NAMESPACE));
    let folder = "{{ trimSuffix \"/\" $.Values.prometheusRule.runbooks }}/";
    labelled(&text, "prometheusRule").replace("@runbooks@", folder)
}

/// The object, if the condition holds. Braces in its texts are for Prometheus and Grafana, not for Helm.
fn when(condition: &str, object: &Value) -> String {
    let text = yaml::document(object).replace("{{", "{{ `{{` }}");
    let text = text.replace(NAMESPACE, "{{ .Release.Namespace }}");
    format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

/// A Secret whose content is a value.
fn secret(condition: &str, name: &str, members: &[(&str, &str)]) -> String {
    let members = members
        .iter()
        .map(|(member, expression)| format!("  {member}: {{{{ {expression} | quote }}}}\n"));
    format!(
        "{{{{- if {condition} }}}}\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  \
         name: {{{{ .Values.ironic.{name}Secret | quote }}}}\n  namespace: {{{{ .Release.Namespace | quote }}}}\n\
         stringData:\n{}type: Opaque\n{{{{- end }}}}\n",
        members.collect::<String>()
    )
}

const METRICS: &str = "metal3-controller-manager-metrics";

fn labels() -> Value {
    let (name, value) = guard::PART_OF_LABEL;
    json!({ name: value, "metal3-rs/service": "metrics" })
}

fn service() -> Value {
    let selector = Form::default().layout(None).selector();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": METRICS, "namespace": NAMESPACE, "labels": labels() },
        "spec": { "ports": [{ "name": "metrics", "port": 8443, "targetPort": "metrics" }], "selector": selector },
    })
}

/// To be bound to the account of Prometheus.
fn reader() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "metal3-metrics-reader" },
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    })
}

fn service_monitor() -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
        "metadata": { "name": "metal3-controller-manager", "namespace": NAMESPACE, "labels": "@labels@" },
        "spec": {
            "selector": { "matchLabels": labels() },
            "endpoints": [{
                "port": "metrics", "scheme": "https", "path": "/metrics",
                // The namespace of a pool and of a host, not that of the Pod.
                "honorLabels": true,
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                // The certificate is for the webhook Services.
                "tlsConfig": { "insecureSkipVerify": true },
            }],
        },
    })
}

/// Without a Service. A PodMonitor cannot name a file of Prometheus, so the token is in a Secret, whose name is a value.
fn pod_monitor() -> String {
    let object = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
        "metadata": { "name": "metal3-controller-manager", "namespace": NAMESPACE, "labels": "@labels@" },
        "spec": {
            "selector": { "matchLabels": Form::default().layout(None).selector() },
            "podMetricsEndpoints": [{
                "port": "metrics", "scheme": "https", "path": "/metrics", "honorLabels": true,
                "authorization": { "credentials": { "name": "@token@", "key": "token" } },
                "tlsConfig": { "insecureSkipVerify": true },
            }],
        },
    });
    let text = labelled(&when(".Values.podMonitor.enabled", &object), "podMonitor");
    text.replace("\"@token@\"", "{{ $.Values.podMonitor.tokenSecret | quote }}")
}

/// The labels of the object are a value of this group.
fn labelled(text: &str, group: &str) -> String {
    text.replace(
        "  labels: \"@labels@\"\n",
        &format!(
            "{{{{- with .Values.{group}.labels }}}}\n  labels:\n{{{{- toYaml . | nindent 4 }}}}\n{{{{- end }}}}\n"
        ),
    )
}
