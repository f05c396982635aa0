//! The values of the charts, with their defaults, schemas and descriptions.

mod ironic;

use serde_json::{Map, Value, json};

use super::schemas::{NAME, OPTIONAL_NAME, OPTIONAL_NAMESPACE, decided, peers, resources, settings, toleration};
use super::slots::CHECKSUM;
use crate::release::install::metrics_from;

/// A value of the chart.
pub(super) struct Row {
    /// `replicas`, or `ironic.endpoint`.
    pub(super) path: &'static str,
    pub(super) default: Value,
    pub(super) schema: Value,
    pub(super) about: &'static str,
}

fn row(path: &'static str, default: Value, schema: Value, about: &'static str) -> Row {
    Row {
        path,
        default,
        schema,
        about,
    }
}

fn switch(path: &'static str, default: bool, about: &'static str) -> Row {
    row(path, default.into(), json!({ "type": "boolean" }), about)
}

fn text(path: &'static str, default: &str, about: &'static str) -> Row {
    row(path, default.into(), json!({ "type": "string" }), about)
}

/// Texts by name. Helm makes a number of a text that looks like one, unless it is given with `--set-string`.
fn texts(path: &'static str, default: Value, about: &'static str) -> Row {
    let schema = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    row(path, default, schema, about)
}

fn name(path: &'static str, default: &str, about: &'static str) -> Row {
    row(
        path,
        default.into(),
        json!({ "type": "string", "pattern": NAME }),
        about,
    )
}

/// The values of both charts, with their defaults.
fn shared() -> Vec<Row> {
    vec![
        switch(
            "products.ipam",
            true,
            "IP addresses: kinds, webhooks, role and controllers of ipam.metal3.io",
        ),
        switch(
            "products.capm3",
            true,
            "clusters and machines: infrastructure.cluster.x-k8s.io",
        ),
        switch("products.hosts", true, "hosts: metal3.io"),
        row(
            "certificates",
            "cert-manager".into(),
            json!({ "enum": ["cert-manager", "self-managed"] }),
            "who issues the certificate of the webhooks: cert-manager, or self-managed for the program itself",
        ),
    ]
}

/// The values of the chart of definitions.
pub(super) fn of_definitions() -> Vec<Row> {
    shared()
}

/// The values of the chart of the program. Those of the Pod are read from the Deployment of the components.
pub(super) fn of_program(deployment: &Value) -> Vec<Row> {
    let pods = [of_pod(deployment), of_schedule(deployment), of_members(deployment)]
        .into_iter()
        .flatten();
    let groups = [
        shared(),
        scope(),
        pods.collect(),
        network(),
        monitoring(),
        ironic::rows(),
        agents(),
    ];
    groups.into_iter().flatten().collect()
}

/// What the process does.
fn scope() -> Vec<Row> {
    vec![
        row(
            "watchNamespace",
            "".into(),
            json!({ "type": "string", "pattern": OPTIONAL_NAMESPACE, "maxLength": 63 }),
            "the only namespace that is watched, with permissions in it alone; empty for all",
        ),
        switch(
            "observeOnly",
            false,
            "print what would be done, and write nothing, with roles that only read",
        ),
        switch(
            "admissionPolicies",
            true,
            "policies that limit which Secrets and hosts the program writes, always with self-managed; IRONIC_NETWORKING_ENABLED needs false",
        ),
        row(
            "extraArgs",
            json!([]),
            json!({ "type": "array", "items": { "type": "string", "pattern": "^--", "not": { "pattern": decided() } } }),
            "more flags of docs/flags.md, other than those that values and objects of the chart decide",
        ),
        row(
            "settings",
            json!({}),
            json!({
                "type": "object", "propertyNames": { "enum": settings() }, "additionalProperties": { "type": "string" },
            }),
            "environment variables of docs/flags.md that no other value sets, as texts: PROVISIONING_LIMIT: \"20\"",
        ),
    ]
}

/// The Pods.
fn of_pod(deployment: &Value) -> Vec<Row> {
    let at = |pointer: &str| deployment.pointer(pointer).cloned().unwrap_or_default();
    let container = |member: &str| at(&format!("/spec/template/spec/containers/0/{member}"));
    let objects = |schema: Value| json!({ "type": "array", "items": schema });
    vec![
        row(
            "image",
            "".into(),
            json!({ "type": "string", "pattern": r"^[^\s@]*(@sha256:[0-9a-f]{64})?$" }),
            "another image, with a tag or a digest; empty for that of the chart, which each release changes",
        ),
        row(
            "imagePullPolicy",
            container("imagePullPolicy"),
            json!({ "enum": ["Always", "IfNotPresent", "Never"] }),
            "when the kubelet pulls it",
        ),
        row(
            "imagePullSecrets",
            json!([]),
            objects(json!({
                "type": "object", "required": ["name"], "additionalProperties": false,
                "properties": { "name": { "type": "string", "pattern": NAME } },
            })),
            "Secrets with logins of the registry, as `- name: NAME`",
        ),
    ]
}

/// How many Pods there are, where they run, and what they have.
fn of_schedule(deployment: &Value) -> Vec<Row> {
    let at = |pointer: &str| deployment.pointer(pointer).cloned().unwrap_or_default();
    let objects = |schema: Value| json!({ "type": "array", "items": schema });
    vec![
        row(
            "replicas",
            at("/spec/replicas"),
            json!({ "type": "integer", "minimum": 0, "maximum": 99 }),
            "Pods; one leads and the others wait",
        ),
        row(
            "resources",
            at("/spec/template/spec/containers/0/resources"),
            resources(),
            "requests and limits of a Pod",
        ),
        row(
            "priorityClassName",
            "".into(),
            json!({ "type": "string", "pattern": OPTIONAL_NAME }),
            "an existing PriorityClass",
        ),
        texts("nodeSelector", json!({}), "labels of the Nodes"),
        row(
            "tolerations",
            at("/spec/template/spec/tolerations"),
            objects(toleration()),
            "taints that the Pods tolerate",
        ),
        row(
            "affinity",
            at("/spec/template/spec/affinity"),
            json!({ "type": "object" }),
            "which Nodes the Pods prefer: different ones",
        ),
        row(
            "topologySpreadConstraints",
            json!([]),
            objects(json!({ "type": "object", "required": ["topologyKey"] })),
            "how the Pods are spread over zones",
        ),
    ]
}

/// More members of the Pods and their account.
fn of_members(deployment: &Value) -> Vec<Row> {
    let own = |member: &str| {
        let members = deployment.pointer(&format!("/spec/template/metadata/{member}"));
        let names = members.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let names = names.map(String::as_str).chain([CHECKSUM]);
        // Of two members of one name the later one counts.
        json!({ "not": { "enum": names.collect::<Vec<_>>() } })
    };
    let further = |path, names: Value, about| {
        let schema = json!({ "type": "object", "propertyNames": names, "additionalProperties": { "type": "string" } });
        row(path, json!({}), schema, about)
    };
    vec![
        further("podLabels", own("labels"), "more labels of the Pods"),
        further("podAnnotations", own("annotations"), "more annotations of the Pods"),
        texts(
            "serviceAccountAnnotations",
            json!({}),
            "annotations of the ServiceAccount",
        ),
        row(
            "extraVolumes",
            json!([]),
            json!({ "type": "array", "items": { "type": "object", "required": ["name"] } }),
            "volumes of the Pods, such as a Secret with the CA that --webhook-client-ca-file names",
        ),
        row(
            "extraVolumeMounts",
            json!([]),
            json!({ "type": "array", "items": { "type": "object", "required": ["name", "mountPath"] } }),
            "where the container has them",
        ),
    ]
}

/// Objects about the Pods.
fn network() -> Vec<Row> {
    vec![
        switch(
            "podDisruptionBudget.enabled",
            true,
            "at most one Pod is evicted at a time",
        ),
        switch(
            "networkPolicy.enabled",
            true,
            "only the ports of webhooks and metrics are reachable; the Node of a Pod reaches all of them",
        ),
        row(
            "networkPolicy.webhookFrom",
            json!([]),
            peers(),
            "the API server, as peers of a NetworkPolicy: `- ipBlock: {cidr: 10.0.0.0/28}`; empty for everyone",
        ),
        row(
            "networkPolicy.metricsFrom",
            metrics_from(),
            peers(),
            "Prometheus, as peers; by default all Pods, empty for everyone",
        ),
        row(
            "networkPolicy.probesFrom",
            json!([]),
            peers(),
            "who reads the port of probes other than the Node, as peers; empty for no one",
        ),
        row(
            "networkPolicy.egress",
            json!([]),
            json!({ "type": "array", "items": {
                "type": "object", "additionalProperties": false, "properties": { "to": peers(), "ports": { "type": "array" } },
            } }),
            "rules of egress: API server, DNS, Ironic, workload clusters; empty for no limit",
        ),
    ]
}

/// Figures for Prometheus and Grafana.
fn monitoring() -> Vec<Row> {
    vec![
        switch(
            "serviceMonitor.enabled",
            false,
            "a ServiceMonitor, its Service, and the role that its reader needs; Prometheus does not verify the certificate",
        ),
        texts(
            "serviceMonitor.labels",
            json!({}),
            "labels by which your Prometheus finds it",
        ),
        switch(
            "podMonitor.enabled",
            false,
            "a PodMonitor and the role that its reader needs, instead of serviceMonitor; the certificate is not verified either",
        ),
        texts(
            "podMonitor.labels",
            json!({}),
            "labels by which your Prometheus finds it",
        ),
        name(
            "podMonitor.tokenSecret",
            "metal3-metrics-token",
            "Secret with `token`, that of an account with the role metal3-metrics-reader",
        ),
        switch(
            "prometheusRule.enabled",
            false,
            "a PrometheusRule with the alerts of docs/metrics.md",
        ),
        texts(
            "prometheusRule.labels",
            json!({}),
            "labels by which your Prometheus finds it",
        ),
        row(
            "prometheusRule.runbooks",
            "docs/".into(),
            json!({ "type": "string", "pattern": r#"^[^\s"\\{}]*$"# }),
            "what stands before the path in links to runbooks: the URL of the folder docs",
        ),
        switch("dashboards.enabled", false, "a ConfigMap with dashboards for Grafana"),
        texts(
            "dashboards.labels",
            json!({ "grafana_dashboard": "1" }),
            "labels by which your Grafana finds them",
        ),
    ]
}

/// What agents do.
fn agents() -> Vec<Row> {
    vec![switch(
        "fastTrack",
        false,
        "keep agents running between inspection and deployment (CAPM3_FAST_TRACK); for products.capm3",
    )]
}
