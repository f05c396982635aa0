//! The values of the charts: one table for `values.yaml` and for `values.schema.json`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use metal3_domain::yaml;
use metal3_flags::VARIABLES;
use serde_json::{Map, Value, json};

use crate::release::install::metrics_from;

/// A value of the chart.
pub(super) struct Row {
    /// `replicas`, or `ironic.endpoint`.
    pub(super) path: &'static str,
    default: Value,
    schema: Value,
    about: &'static str,
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

/// A name of an object.
const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The same, or nothing.
const OPTIONAL_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";
/// A namespace, or nothing.
const OPTIONAL_NAMESPACE: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$";

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
    let groups = [shared(), scope(), of_pod(deployment), objects(), ironic()];
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
        switch("observeOnly", false, "print what would be done, and write nothing"),
        row(
            "extraArgs",
            json!([]),
            json!({ "type": "array", "items": { "type": "string", "pattern": "^--", "not": { "pattern": DECIDED } } }),
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

/// Flags with which the process would contradict its roles, ports, webhooks or replicas.
const DECIDED: &str =
    "^--(controllers|namespace|leader-elect|webhook-port|diagnostics-address|webhook-certificates|observe-only)(=|$)";

/// The variables of the program that other values set.
const VALUED: [&str; 5] = [
    "IRONIC_ENDPOINT",
    "IRONIC_ENDPOINTS",
    "IRONIC_NAME",
    "IRONIC_NAMESPACE",
    "WATCH_NAMESPACE",
];

/// The variables of the program that no other value sets.
fn settings() -> Vec<&'static str> {
    let names = VARIABLES.iter().map(|variable| variable.name);
    names.filter(|name| !VALUED.contains(name)).collect()
}

fn toleration() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "key": { "type": "string" }, "value": { "type": "string" },
            "operator": { "enum": ["Exists", "Equal", "Lt", "Gt"] },
            "effect": { "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute", ""] },
            "tolerationSeconds": { "type": "integer" },
        },
    })
}

/// Requests and limits, each by the name of a resource.
fn resources() -> Value {
    let quantity = json!({
        "type": ["string", "number"], "pattern": "^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+|[EPTGMK]i|[EPTGMkmun])?$", "minimum": 0,
    });
    let quantities = json!({ "type": "object", "additionalProperties": quantity });
    json!({
        "type": "object", "additionalProperties": false,
        "properties": { "limits": quantities, "requests": quantities, "claims": { "type": "array" } },
    })
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
            json!({ "type": "string", "pattern": r"^\S*$" }),
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
        row(
            "replicas",
            at("/spec/replicas"),
            json!({ "type": "integer", "minimum": 0 }),
            "Pods; one leads and the others wait",
        ),
        row(
            "resources",
            container("resources"),
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
        texts("podLabels", json!({}), "more labels of the Pods"),
        texts("podAnnotations", json!({}), "more annotations of the Pods"),
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

/// Peers of a NetworkPolicy.
fn peers() -> Value {
    json!({ "type": "array", "items": {
        "type": "object", "minProperties": 1, "additionalProperties": false,
        "properties": {
            "ipBlock": { "type": "object" }, "namespaceSelector": { "type": "object" }, "podSelector": { "type": "object" },
        },
    } })
}

/// Objects other than the Pods.
fn objects() -> Vec<Row> {
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
        switch(
            "serviceMonitor.enabled",
            false,
            "a ServiceMonitor, its Service, and the role that its reader needs",
        ),
        texts(
            "serviceMonitor.labels",
            json!({}),
            "labels by which your Prometheus finds it",
        ),
        switch(
            "podMonitor.enabled",
            false,
            "a PodMonitor and the role that its reader needs, instead of serviceMonitor",
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
        text(
            "prometheusRule.runbooks",
            "docs/",
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

/// Ironic, and what agents do.
fn ironic() -> Vec<Row> {
    vec![
        row(
            "ironic.endpoint",
            "".into(),
            json!({ "type": "string", "pattern": r"^(https?://[^\s,]+)?$" }),
            "URL of Ironic; empty for https://ironic.NAMESPACE.svc:6385. One of http:// needs --allow-insecure-ironic in extraArgs",
        ),
        row(
            "ironic.endpoints",
            "".into(),
            json!({ "type": "string", "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?=https?://[^\s,]+(,\s*|$))*$" }),
            "further Ironics without a login: name=https://host:6385,name=https://host:6385",
        ),
        row(
            "ironic.further",
            json!([]),
            further(),
            "further Ironics: `name`, `endpoint`, and Secrets as below, `credentialsSecret`, `caSecret`, `clientCertificateSecret`",
        ),
        row(
            "ironic.name",
            "".into(),
            json!({ "type": "string", "pattern": r"^([a-z0-9]([-a-z0-9./]*[a-z0-9])?(,\s*|$))*$" }),
            "Ironic resource of ironic-standalone-operator in place of an endpoint, a login and a CA",
        ),
        row(
            "ironic.namespace",
            "".into(),
            json!({ "type": "string", "pattern": OPTIONAL_NAMESPACE, "maxLength": 63 }),
            "its namespace; empty for that of the release",
        ),
        text(
            "ironic.username",
            "",
            "with the password: the Secret with the login is created; for products.hosts",
        ),
        text(
            "ironic.password",
            "",
            "kept in the release; a Secret of your own is safer",
        ),
        text(
            "ironic.ca",
            "",
            "certificates of Ironic's CA in PEM: the Secret with them is created; for products.hosts",
        ),
        name(
            "ironic.credentialsSecret",
            "ironic-credentials",
            "Secret with username and password",
        ),
        name("ironic.caSecret", "ironic-cacert", "Secret with tls.crt, the CA"),
        name(
            "ironic.clientCertificateSecret",
            "ironic-client-cert",
            "Secret with a client certificate",
        ),
        switch(
            "fastTrack",
            false,
            "keep agents running between inspection and deployment (CAPM3_FAST_TRACK); for products.capm3",
        ),
    ]
}

/// The schema of further Ironics. The Ironic of `ironic.endpoint` has the name `ironic`.
fn further() -> Value {
    let secret = json!({ "type": "string", "pattern": NAME });
    json!({ "type": "array", "items": {
        "type": "object",
        "required": ["name", "endpoint"],
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 50,
                "not": { "const": "ironic" },
            },
            "endpoint": { "type": "string", "pattern": r"^https?://[^\s,]+$" },
            "credentialsSecret": secret, "caSecret": secret, "clientCertificateSecret": secret,
        },
    } })
}

/// `values.yaml`, with a comment for each value.
pub(super) fn yaml(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut open = "";
    for row in rows {
        let (group, member) = row.path.split_once('.').unwrap_or(("", row.path));
        if group != open && !group.is_empty() {
            text.push_str(&format!("{group}:\n"));
        }
        open = group;
        let indent = if group.is_empty() { "" } else { "  " };
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{indent}# {}", row.about);
        let value = yaml::text(&json!({ member: row.default }));
        text.extend(value.lines().map(|line| format!("{indent}{line}\n")));
    }
    text
}

/// `values.schema.json`. Other members than those of the table are errors.
pub(super) fn schema(rows: &[Row]) -> Value {
    let mut members = Map::new();
    // Helm adds it for charts that contain others, which name the others as conditions.
    members.insert("global".to_owned(), json!({}));
    members.insert("enabled".to_owned(), json!({ "type": "boolean" }));
    members.insert("tags".to_owned(), json!({ "type": "object" }));
    for row in rows {
        let mut schema = row.schema.clone();
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), row.about.into());
        }
        match row.path.split_once('.') {
            None => {
                members.insert(row.path.to_owned(), schema);
            }
            Some((group, member)) => {
                let group = members
                    .entry(group.to_owned())
                    .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
                if let Some(Value::Object(below)) = group.get_mut("properties") {
                    below.insert(member.to_owned(), schema);
                }
            }
        }
    }
    let mut whole = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "required": required(rows),
        "properties": members,
        "allOf": rules(rows),
    });
    if let Some(products) = whole.pointer_mut("/properties/products")
        && let Value::Object(products) = products
    {
        let on = ["ipam", "capm3", "hosts"].map(|name| json!({ "properties": { name: { "const": true } } }));
        products.insert("anyOf".to_owned(), json!(on));
        products.insert("required".to_owned(), json!(["ipam", "capm3", "hosts"]));
    }
    whole
}

/// Members without which templates have nothing to read from: a `null` removes one. The values of an older release, which an
/// upgrade may reuse, have them, so a new group of values needs templates that accept its absence.
fn required(rows: &[Row]) -> BTreeSet<&'static str> {
    let groups = rows.iter().filter_map(|row| Some(row.path.split_once('.')?.0));
    let members = rows.iter().map(|row| row.path);
    groups
        .chain(members.filter(|path| ["certificates", "replicas"].contains(path)))
        .collect()
}

/// Values that contradict each other.
fn rules(rows: &[Row]) -> Vec<Value> {
    if !rows.iter().any(|row| row.path == "observeOnly") {
        return vec![json!({})];
    }
    let filled = json!({ "minLength": 1 });
    let login = |member: &str| json!({ "properties": { "ironic": { "properties": { member: filled } } } });
    vec![
        json!({ "not": { "properties": {
            "observeOnly": { "const": true }, "certificates": { "const": "self-managed" },
        } } }),
        json!({ "not": { "properties": {
            "serviceMonitor": { "properties": { "enabled": { "const": true } } },
            "podMonitor": { "properties": { "enabled": { "const": true } } },
        } } }),
        json!({
            "if": { "properties": { "ironic": { "properties": { "endpoint": { "pattern": "^http:" } } } } },
            "then": { "properties": { "extraArgs": { "contains": { "pattern": "^--allow-insecure-ironic(=true)?$" } } } },
        }),
        json!({ "if": login("username"), "then": login("password") }),
        json!({ "if": login("password"), "then": login("username") }),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn rows() -> Vec<Row> {
        of_program(&json!({ "spec": { "replicas": 2, "template": { "spec": { "tolerations": [{ "key": "a" }] } } } }))
    }

    #[test]
    fn every_variable_of_the_program_can_be_set() {
        let (schema, rows) = (schema(&rows()), rows());
        let of_settings = &schema["properties"]["settings"]["propertyNames"]["enum"];
        let of_settings: Vec<&str> = of_settings
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let of_values = BTreeMap::from([
            ("IRONIC_ENDPOINT", "ironic.endpoint"),
            ("IRONIC_ENDPOINTS", "ironic.endpoints"),
            ("IRONIC_NAME", "ironic.name"),
            ("IRONIC_NAMESPACE", "ironic.namespace"),
            ("WATCH_NAMESPACE", "watchNamespace"),
        ]);
        for variable in VARIABLES {
            let value = of_values.get(variable.name);
            let is_value = value.is_some_and(|value| rows.iter().any(|row| row.path == *value));
            let is_setting = of_settings.contains(&variable.name);
            assert!(
                is_value != is_setting,
                "{}: {value:?}, a setting: {is_setting}",
                variable.name
            );
        }
    }

    #[test]
    fn every_value_is_in_the_file_with_its_default_and_in_the_schema() {
        let values: Value = serde_saphyr::from_str(&yaml(&rows())).unwrap();
        let schema = schema(&rows());
        for row in rows() {
            let pointer = format!("/{}", row.path.replace('.', "/"));
            assert_eq!(values.pointer(&pointer), Some(&row.default), "{}", row.path);
            let in_schema = format!("/properties/{}", row.path.replace('.', "/properties/"));
            assert_eq!(
                schema.pointer(&in_schema).unwrap()["description"],
                row.about,
                "{}",
                row.path
            );
        }
    }
}
