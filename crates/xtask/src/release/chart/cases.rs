//! The values that `chart-check` sets, and what they have to do.

use super::{DEFINITIONS, PROGRAM};

const EGRESS: &str = concat!(
    r#"{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/28"}}]}],"#,
    r#""ingress":[{"ports":[{"port":"webhook-server","protocol":"TCP"}]},"#,
    r#"{"from":[{"namespaceSelector":{}}],"ports":[{"port":"metrics","protocol":"TCP"}]}],"#,
    r#""podSelector":{"matchLabels":{"control-plane":"metal3-controller-manager"}},"policyTypes":["Ingress","Egress"]}"#,
);

const FURTHER: [&str; 2] = ["ironic.further[0].name=c", "ironic.further[0].endpoint=https://c:1"];

/// Values, and the text at a member of the first object of a kind that has it.
pub(super) const EFFECTS: &[(&[&str], &str, &str, &str)] = &[
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
    (
        &["admissionPolicies=false", "certificates=self-managed"],
        "ValidatingAdmissionPolicyBinding",
        "/spec/policyName",
        "\"metal3-secret-writes\"",
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
pub(super) const REMOVED: &[(&str, &str)] = &[
    ("podDisruptionBudget.enabled=false", "PodDisruptionBudget"),
    ("networkPolicy.enabled=false", "NetworkPolicy"),
    ("admissionPolicies=false", "ValidatingAdmissionPolicy"),
    ("admissionPolicies=false", "ValidatingAdmissionPolicyBinding"),
];

/// Chart, value, and what the error names.
pub(super) const REFUSED: &[(&str, &str, &str)] = &[
    (PROGRAM, "networkPolicy.webhookFrom[0].cidr=10.0.0.0/28", "webhookFrom"),
    (PROGRAM, "settings.IRONIC_ENDPOINT=https://a", "IRONIC_ENDPOINT"),
    (PROGRAM, "settings.IRONIC_NETWORKING_ENABLED=1", "admissionPolicies"),
    (
        PROGRAM,
        "settings.IRONIC_NETWORKING_ENABLED=1,admissionPolicies=false,certificates=self-managed",
        "certificates",
    ),
    (PROGRAM, "settings.IRONIC_TIMEOUT=60s", "IRONIC_TIMEOUT"),
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
