//! `chart-check`: the real Helm reads the charts, and renders what the components contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use metal3_files::documents;
use serde_json::{Value, json};

use super::{DEFINITIONS, PROGRAM, package, slots, tree};
use crate::release::form::{Form, Key, key};
use crate::release::layout::WATCHED;
use crate::run::next_to;

/// Namespace of the release: that of the components.
pub(super) const NAMESPACE: &str = "metal3-system";
/// The watched namespace of forms with one. It looks like a number.
pub(super) const TENANT: &str = "123";

type Objects = BTreeMap<Key, Value>;

/// Checks the charts in a folder, which were written for this image.
pub(crate) fn run(folder: &Path, image: &str, helm: &Path) -> Result<bool> {
    let helm = Helm {
        program: helm.to_path_buf(),
        charts: folder.to_path_buf(),
    };
    for chart in [DEFINITIONS, PROGRAM] {
        let (accepted, text) = helm.answer("lint", chart, &["--strict"])?;
        ensure!(accepted, "helm lint {chart}: {text}");
    }
    packaged(&helm, image)?;
    super::push::check(folder, &helm.program)?;
    let forms = tree::forms();
    let mut compared = 0;
    for form in &forms {
        compared += same(&helm, form, image)?;
    }
    println!(
        "charts: {} forms rendered, {compared} objects equal to those of the components",
        forms.len()
    );
    for (arguments, kind, pointer, wanted) in EFFECTS.iter().copied() {
        effect(&helm, arguments, kind, pointer, wanted)?;
    }
    for (argument, kind) in REMOVED.iter().copied() {
        for (arguments, is_there) in [(vec![], true), (vec!["--set", argument], false)] {
            let objects = helm.objects(PROGRAM, &arguments)?;
            ensure!(
                objects.iter().any(|object| object["kind"] == kind) == is_there,
                "{arguments:?}: whether there is a {kind} is not {is_there}"
            );
        }
    }
    let observing = helm.objects(PROGRAM, &["--set", "observeOnly=true"])?;
    ensure!(
        observing
            .iter()
            .all(|object| !key(object).0.ends_with("WebhookConfiguration")),
        "a process that observes has webhooks, which it does not serve"
    );
    for (chart, argument, why) in REFUSED.iter().copied() {
        let (accepted, text) = helm.answer("template", chart, &["--set", argument])?;
        ensure!(
            !accepted && text.contains(why),
            "helm template {chart} --set {argument}: {text}"
        );
    }
    println!(
        "charts: {} values have their effect, {} wrong ones are refused",
        EFFECTS.len() + REMOVED.len(),
        REFUSED.len()
    );
    Ok(true)
}

const EGRESS: &str = concat!(
    r#"{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/28"}}]}],"#,
    r#""ingress":[{"ports":[{"port":"webhook-server","protocol":"TCP"}]},"#,
    r#"{"from":[{"namespaceSelector":{}}],"ports":[{"port":"metrics","protocol":"TCP"}]}],"#,
    r#""podSelector":{"matchLabels":{"control-plane":"metal3-controller-manager"}},"policyTypes":["Ingress","Egress"]}"#,
);

const FURTHER: [&str; 2] = ["ironic.further[0].name=c", "ironic.further[0].endpoint=https://c:1"];

/// Values, and the text at a member of the first object of a kind that has it.
const EFFECTS: &[(&[&str], &str, &str, &str)] = &[
    (&["replicas=3"], "Deployment", "/spec/replicas", "3"),
    (
        &["image=r/x@sha256:1"],
        "Deployment",
        "/spec/template/spec/containers/0/image",
        "\"r/x@sha256:1\"",
    ),
    (
        &["priorityClassName=high"],
        "Deployment",
        "/spec/template/spec/priorityClassName",
        "\"high\"",
    ),
    (
        &["nodeSelector.a=b"],
        "Deployment",
        "/spec/template/spec/nodeSelector",
        r#"{"a":"b"}"#,
    ),
    (
        &["imagePullSecrets[0].name=a"],
        "Deployment",
        "/spec/template/spec/imagePullSecrets",
        r#"[{"name":"a"}]"#,
    ),
    (
        &["resources.limits.memory=1Gi"],
        "Deployment",
        "/spec/template/spec/containers/0/resources/limits",
        r#"{"memory":"1Gi"}"#,
    ),
    (
        &["extraArgs[0]=--v=5"],
        "Deployment",
        "/spec/template/spec/containers/0/args/4",
        "\"--v=5\"",
    ),
    (
        &["observeOnly=true"],
        "Deployment",
        "/spec/template/spec/containers/0/args/4",
        "\"--observe-only\"",
    ),
    (
        &["imagePullPolicy=Always"],
        "Deployment",
        "/spec/template/spec/containers/0/imagePullPolicy",
        "\"Always\"",
    ),
    (
        &["networkPolicy.webhookFrom[0].ipBlock.cidr=10.0.0.0/28"],
        "NetworkPolicy",
        "/spec/ingress/0",
        r#"{"from":[{"ipBlock":{"cidr":"10.0.0.0/28"}}],"ports":[{"port":"webhook-server","protocol":"TCP"}]}"#,
    ),
    (
        &["networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b"],
        "NetworkPolicy",
        "/spec/ingress/1/from",
        r#"[{"podSelector":{"matchLabels":{"a":"b"}}}]"#,
    ),
    (
        &["networkPolicy.probesFrom[0].ipBlock.cidr=10.0.0.0/28"],
        "NetworkPolicy",
        "/spec/ingress/2",
        r#"{"from":[{"ipBlock":{"cidr":"10.0.0.0/28"}}],"ports":[{"port":"healthz","protocol":"TCP"}]}"#,
    ),
    (
        &["networkPolicy.egress[0].to[0].ipBlock.cidr=10.0.0.0/28"],
        "NetworkPolicy",
        "/spec",
        EGRESS,
    ),
    (
        &["podLabels.a=b"],
        "Deployment",
        "/spec/template/metadata/labels/a",
        "\"b\"",
    ),
    (
        &["podAnnotations.a=b"],
        "Deployment",
        "/spec/template/metadata/annotations/a",
        "\"b\"",
    ),
    (
        &["serviceAccountAnnotations.a=b"],
        "ServiceAccount",
        "/metadata/annotations",
        r#"{"a":"b"}"#,
    ),
    (
        &["affinity.nodeAffinity.a=b", "affinity.podAntiAffinity=null"],
        "Deployment",
        "/spec/template/spec/affinity",
        r#"{"nodeAffinity":{"a":"b"}}"#,
    ),
    (
        &["topologySpreadConstraints[0].topologyKey=zone"],
        "Deployment",
        "/spec/template/spec/topologySpreadConstraints/0/topologyKey",
        "\"zone\"",
    ),
    // The condition of a chart that contains this one.
    (&["enabled=true", "tags.a=true"], "Deployment", "/spec/replicas", "2"),
    (&["fastTrack=true"], "ConfigMap", "/data/CAPM3_FAST_TRACK", "\"true\""),
    (
        &["ironic.caSecret=mine"],
        "Deployment",
        "/spec/template/spec/volumes/2/secret/secretName",
        "\"mine\"",
    ),
    (
        &["ironic.endpoint=https://a:1"],
        "ConfigMap",
        "/data/IRONIC_ENDPOINT",
        "\"https://a:1\"",
    ),
    (
        &["ironic.endpoints=b=https://b:1"],
        "ConfigMap",
        "/data/IRONIC_ENDPOINTS",
        "\"b=https://b:1\"",
    ),
    (
        &["settings.IRONIC_CLIENT_TIMEOUT=60s"],
        "ConfigMap",
        "/data/IRONIC_CLIENT_TIMEOUT",
        "\"60s\"",
    ),
    (
        &["extraVolumes[0].name=a", "extraVolumes[0].secret.secretName=b"],
        "Deployment",
        "/spec/template/spec/volumes/4",
        r#"{"name":"a","secret":{"secretName":"b"}}"#,
    ),
    (
        &["extraVolumeMounts[0].name=a", "extraVolumeMounts[0].mountPath=/b"],
        "Deployment",
        "/spec/template/spec/containers/0/volumeMounts/4",
        r#"{"mountPath":"/b","name":"a"}"#,
    ),
    (
        &["ironic.endpoints=b=https://b:1", FURTHER[0], FURTHER[1]],
        "ConfigMap",
        "/data/IRONIC_ENDPOINTS",
        "\"b=https://b:1,c=https://c:1\"",
    ),
    (
        &[
            FURTHER[0],
            FURTHER[1],
            "ironic.further[0].credentialsSecret=d",
            "ironic.further[0].caSecret=e",
        ],
        "Deployment",
        "/spec/template/spec/volumes/4/projected/sources",
        r#"[{"secret":{"name":"d"}},{"secret":{"items":[{"key":"tls.crt","path":"ca.crt"}],"name":"e"}}]"#,
    ),
    (
        &["ironic.name=ironic", "ironic.namespace=b"],
        "ConfigMap",
        "/data/IRONIC_NAME",
        "\"ironic\"",
    ),
    (
        &["ironic.username=a", "ironic.password=p1"],
        "Secret",
        "/stringData/password",
        "\"p1\"",
    ),
    (&["ironic.ca=PEM"], "Secret", "/stringData/tls.crt", "\"PEM\""),
    (
        &["serviceMonitor.enabled=true", "serviceMonitor.labels.a=b"],
        "ServiceMonitor",
        "/metadata/labels/a",
        "\"b\"",
    ),
    (
        &["serviceMonitor.enabled=true"],
        "ServiceMonitor",
        "/spec/endpoints/0/honorLabels",
        "true",
    ),
    (
        &["podMonitor.enabled=true", "podMonitor.labels.a=b"],
        "PodMonitor",
        "/metadata/labels/a",
        "\"b\"",
    ),
    (
        &["podMonitor.enabled=true", "podMonitor.tokenSecret=mine"],
        "PodMonitor",
        "/spec/podMetricsEndpoints/0/authorization/credentials",
        r#"{"key":"token","name":"mine"}"#,
    ),
    (
        &["podMonitor.enabled=true"],
        "ClusterRole",
        "/rules/0/nonResourceURLs",
        r#"["/metrics"]"#,
    ),
    (
        &["prometheusRule.enabled=true", "prometheusRule.labels.a=b"],
        "PrometheusRule",
        "/metadata/labels/a",
        "\"b\"",
    ),
    // Helm leaves the braces of Prometheus, and the link has the value.
    (
        &["prometheusRule.enabled=true", "prometheusRule.runbooks=https://a"],
        "PrometheusRule",
        "/spec/groups/0/rules/2/annotations",
        r#"{"description":"Read /readyz and the log of a Pod: a Go manager of the same group may run, or the API server refuses the lease.","runbook_url":"https://a/runbooks/alerts.md#metal3noleader","summary":"No process holds the lease {{ $labels.namespace }}/{{ $labels.name }}."}"#,
    ),
    (
        &["dashboards.enabled=true"],
        "ConfigMap",
        "/metadata/labels/grafana_dashboard",
        "\"1\"",
    ),
];

/// Values, and the kind of which no object is left.
const REMOVED: &[(&str, &str)] = &[
    ("podDisruptionBudget.enabled=false", "PodDisruptionBudget"),
    ("networkPolicy.enabled=false", "NetworkPolicy"),
];

/// Chart, value, and what the error names.
const REFUSED: &[(&str, &str, &str)] = &[
    (PROGRAM, "networkPolicy.webhookFrom[0].cidr=10.0.0.0/28", "webhookFrom"),
    (PROGRAM, "settings.IRONIC_ENDPOINT=https://a", "settings"),
    (PROGRAM, "settings.IRONIC_TIMEOUT=60s", "settings"),
    (PROGRAM, "ironic.further[0].name=c", "endpoint"),
    (PROGRAM, "extraVolumes[0].emptyDir.medium=Memory", "name"),
    (PROGRAM, "image=a b", "image"),
    (PROGRAM, "replica=3", "replica"),
    (PROGRAM, "replicas=-1", "replicas"),
    (PROGRAM, "replicas=two", "replicas"),
    (PROGRAM, "certificates=vault", "certificates"),
    (
        PROGRAM,
        "products.ipam=false,products.capm3=false,products.hosts=false",
        "products",
    ),
    (PROGRAM, "products.host=true", "host"),
    (PROGRAM, "ironic.endpoint=ironic:6385", "endpoint"),
    (PROGRAM, "ironic.username=admin", "password"),
    (PROGRAM, "observeOnly=true,certificates=self-managed", "not"),
    (PROGRAM, "extraArgs[0]=v=5", "extraArgs"),
    (PROGRAM, "extraArgs[0]=--namespace=a", "extraArgs"),
    (PROGRAM, "ironic.endpoint=https://a b", "endpoint"),
    (PROGRAM, "ironic.endpoint=http://a", "extraArgs"),
    (PROGRAM, "ironic.endpoints=a", "endpoints"),
    (PROGRAM, "ironic.name=a b", "name"),
    (PROGRAM, "nodeSelector.a=true", "nodeSelector"),
    (PROGRAM, "dashboards.labels.a=1", "labels"),
    (PROGRAM, "imagePullSecrets[0].nam=a", "imagePullSecrets"),
    (PROGRAM, "tolerations[0].operator=Exist", "tolerations"),
    (PROGRAM, "resources.limit.memory=1Gi", "resources"),
    (PROGRAM, "resources.limits.memory=x", "memory"),
    (PROGRAM, "priorityClassName=a..b", "priorityClassName"),
    (PROGRAM, "serviceMonitor.enabled=true,podMonitor.enabled=true", "not"),
    (PROGRAM, "ironic=null", "ironic"),
    (PROGRAM, "products.hosts=null", "hosts"),
    (PROGRAM, "enabled=1", "enabled"),
    (PROGRAM, "watchNamespace=Not_A_Name", "watchNamespace"),
    (PROGRAM, "watchNamespace=a.b", "watchNamespace"),
    (PROGRAM, "ironic.caSecret=", "caSecret"),
    (DEFINITIONS, "certificates=none", "certificates"),
];

/// Helm renders the archive of each chart as its folder, and the charts of another folder have the same archives.
fn packaged(helm: &Helm, image: &str) -> Result<()> {
    let other = next_to(&helm.charts, "again");
    super::write(&other, image)?;
    let (packages, again) = (package::written(&helm.charts)?, package::written(&other));
    fs::remove_dir_all(&other).with_context(|| format!("remove {}", other.display()))?;
    ensure!(packages == again?, "charts in another folder have other archives");
    for package in &packages {
        let of_folder = helm.answer("template", package.chart, &[])?;
        ensure!(of_folder.0, "helm template {}: {}", package.chart, of_folder.1);
        ensure!(
            helm.answer("template", &package.file(), &[])? == of_folder,
            "helm renders {} in another way than its folder",
            package.file()
        );
    }
    println!("charts: {} archives equal in two folders", packages.len());
    Ok(())
}

/// The program, and the folder of the charts.
pub(super) struct Helm {
    pub(super) program: PathBuf,
    pub(super) charts: PathBuf,
}

impl Helm {
    /// Whether it succeeds, and what it prints.
    fn answer(&self, verb: &str, chart: &str, arguments: &[&str]) -> Result<(bool, String)> {
        let mut helm = Command::new(&self.program);
        helm.arg(verb)
            .arg(self.charts.join(chart))
            .args(["--namespace", NAMESPACE])
            .args(arguments);
        let output = helm
            .output()
            .with_context(|| format!("run {}", self.program.display()))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || verb == "lint" {
            text.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        Ok((output.status.success(), text))
    }

    /// The objects that a chart renders.
    pub(super) fn objects(&self, chart: &str, arguments: &[&str]) -> Result<Vec<Value>> {
        let (rendered, text) = self.answer("template", chart, arguments)?;
        ensure!(rendered, "helm template {chart} {}: {text}", arguments.join(" "));
        let documents = documents::parse(&text, Path::new(chart))?;
        Ok(documents.into_iter().map(|document| document.value).collect())
    }
}

/// The values of a form: those of both charts, and with them those of the program.
pub(super) fn values(form: &Form) -> [Value; 2] {
    let [ipam, capm3, hosts] = form.left_out.map(|left_out| !left_out);
    let certificates = if form.is_self_managed {
        "self-managed"
    } else {
        "cert-manager"
    };
    let namespace = if form.is_namespaced { TENANT } else { "" };
    let shared = json!({
        "products": { "ipam": ipam, "capm3": capm3, "hosts": hosts }, "certificates": certificates,
    });
    let mut program = shared.clone();
    if let Value::Object(members) = &mut program {
        members.insert("watchNamespace".to_owned(), namespace.into());
    }
    [shared, program]
}

/// Compares both charts with the components of a form; returns the number of objects.
fn same(helm: &Helm, form: &Form, image: &str) -> Result<usize> {
    let file = std::env::temp_dir().join(format!("chart-check-{}.json", std::process::id()));
    let path = file.display().to_string();
    let mut rendered = Vec::new();
    for (chart, values) in [DEFINITIONS, PROGRAM].into_iter().zip(values(form)) {
        fs::write(&file, values.to_string()).with_context(|| format!("write {path}"))?;
        rendered.extend(helm.objects(chart, &["--values", &path])?);
    }
    fs::remove_file(&file).with_context(|| format!("remove {path}"))?;
    let rendered = by_key(rendered.into_iter().map(without_helms))?;
    let components = form
        .objects(image, None)
        .into_iter()
        .filter(|object| object["kind"] != "Namespace");
    let text = serde_json::to_string(&components.collect::<Vec<_>>())?.replace(WATCHED, TENANT);
    let components = by_key(serde_json::from_str::<Vec<Value>>(&text)?.into_iter())?;
    let differ: Vec<String> = components
        .keys()
        .chain(rendered.keys().filter(|key| !components.contains_key(*key)))
        .filter(|key| components.get(*key) != rendered.get(*key))
        .map(|(kind, namespace, name)| format!("{kind} {namespace}/{name}"))
        .collect();
    ensure!(
        differ.is_empty(),
        "{form:?}: the chart differs from the components in {}",
        differ.join(", ")
    );
    Ok(rendered.len())
}

/// An object without what only a chart has: the policy that keeps definitions, and the checksum of the settings.
fn without_helms(mut object: Value) -> Value {
    for (of, annotation) in [
        ("/metadata", "helm.sh/resource-policy"),
        ("/spec/template/metadata", slots::CHECKSUM),
    ] {
        let Some(Value::Object(metadata)) = object.pointer_mut(of) else {
            continue;
        };
        let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
            continue;
        };
        annotations.remove(annotation);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

fn by_key(objects: impl Iterator<Item = Value>) -> Result<Objects> {
    let mut found = Objects::new();
    for object in objects {
        if let Some(twice) = found.insert(key(&object), object) {
            bail!("{:?} is there twice", key(&twice));
        }
    }
    Ok(found)
}

fn effect(helm: &Helm, arguments: &[&str], kind: &str, pointer: &str, wanted: &str) -> Result<()> {
    let arguments: Vec<&str> = arguments.iter().flat_map(|argument| ["--set", argument]).collect();
    let objects = helm.objects(PROGRAM, &arguments)?;
    let mut of_kind = objects.iter().filter(|object| object["kind"] == kind);
    let found = of_kind.find_map(|object| object.pointer(pointer)).map(Value::to_string);
    ensure!(
        found.as_deref() == Some(wanted),
        "{arguments:?}: {kind} has {found:?} at {pointer}, not {wanted}"
    );
    Ok(())
}
