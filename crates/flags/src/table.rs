//! The table of flags.

use super::entry::{
    ALL, BUFFERS, CAPM3, HOSTS, IPAM, NO_BUILDER, NO_CLAIMS, NO_PLUGINS, NO_REMEDIATION, NO_SYNC, NO_TEMPLATES, TWO,
    at_once, flag, handled, owned_by, refused,
};
use super::flag::{Flag, Handling, Shape};

/// Every flag, sorted by name.
pub const TABLE: &[Flag] = &[
    // differs (`cluster-attached`): the Go manager adopts nothing.
    flag(
        "adopt-same-name-clusters",
        Shape::Switch,
        "false",
        "Let a Metal3Cluster without a Cluster join the Cluster whose infrastructure has another kind and the same \
         name; it is then deleted and moved with that Cluster",
    ),
    refused(HOSTS, "build-preprov-image", Shape::Switch, "false", NO_BUILDER),
    owned_by(
        CAPM3,
        flag(
            "clustercache-client-burst",
            Shape::Number,
            "30",
            "Burst of requests to a workload cluster, with `--clustercache-client-qps`",
        ),
    ),
    owned_by(
        CAPM3,
        flag(
            "clustercache-client-qps",
            Shape::Number,
            "0",
            "Requests per second to each workload cluster; 0 for no client-side limit. The Go manager's default is 20",
        ),
    ),
    owned_by(
        HOSTS,
        flag(
            "controller-concurrency",
            Shape::Number,
            "0",
            "Concurrent reconciles of hosts; 0 for the environment variable `BMO_CONCURRENCY`, or 8",
        ),
    ),
    flag(
        "controllers",
        Shape::List,
        "",
        "Enabled controllers: `ipam`, `capm3`, `hosts`, or several of them. Required",
    ),
    // differs (`hosts-deprovision-budget`): the Go manager deprovisions any number of hosts.
    flag(
        "deprovision-budget",
        Shape::Number,
        "100",
        "Maximum number of provisioned hosts of a namespace that are deprovisioned per hour; further hosts wait for \
         the annotation `baremetalhost.metal3.io/confirm-deprovision`",
    ),
    owned_by(
        HOSTS,
        handled(
            Handling::Ignored("--v and --logging-format set level and format of the log"),
            flag("dev", Shape::Switch, "false", ""),
        ),
    ),
    owned_by(
        TWO,
        flag(
            "diagnostics-address",
            Shape::Text,
            ":8443",
            "Address of the metrics and the log level; `0` to disable",
        ),
    ),
    owned_by(
        CAPM3,
        flag(
            "enable-bmh-name-based-preallocation",
            Shape::Switch,
            "false",
            "Name new claims on IPPools after the host instead of the Metal3Data, so that a pool can preallocate an \
             address for a host",
        ),
    ),
    owned_by(
        HOSTS,
        handled(
            Handling::Alias("leader-elect"),
            flag("enable-leader-election", Shape::Switch, "false", ""),
        ),
    ),
    flag(
        "force-controllers",
        Shape::Switch,
        "false",
        "Run even if the Go manager of the same controllers runs",
    ),
    flag(
        "foreign-deployments",
        Shape::List,
        "",
        "Deployments of Go managers that must not run at the same time, as `ipam=NAMESPACE/NAME`; by default those of \
         their releases, such as `ipam=metal3-ipam-system/ipam-controller-manager`. The role of this program permits only \
         the default names: add any other one",
    ),
    owned_by(
        ALL,
        flag(
            "health-addr",
            Shape::Text,
            ":9440",
            "Address of `/healthz` and `/readyz`; `0` to disable",
        ),
    ),
    flag("help", Shape::Switch, "false", "Print the flags and exit"),
    refused(HOSTS, "hostclaims", Shape::Switch, "false", NO_CLAIMS),
    owned_by(
        TWO,
        flag(
            "insecure-diagnostics",
            Shape::Switch,
            "false",
            "Serve metrics without TLS and authentication, and nothing else",
        ),
    ),
    owned_by(
        IPAM,
        flag(
            "ippool-concurrency",
            Shape::Number,
            "10",
            "Concurrent reconciles of pools",
        ),
    ),
    owned_by(
        ALL,
        flag(
            "kube-api-burst",
            Shape::Number,
            "30",
            "Burst of requests, with `--kube-api-qps`",
        ),
    ),
    owned_by(
        ALL,
        flag(
            "kube-api-qps",
            Shape::Number,
            "0",
            "Requests per second; 0 for no client-side limit, because the API server has its own. The Go managers' \
             default is 20",
        ),
    ),
    owned_by(
        ALL,
        flag("kubeconfig", Shape::Text, "", "Kubeconfig file; empty in a Pod"),
    ),
    flag(
        "lab-fake-hardware",
        Shape::Switch,
        "false",
        "Accept hosts without a machine, with BMC addresses such as `fake://1`. For test environments",
    ),
    owned_by(
        TWO,
        flag(
            "leader-elect",
            Shape::Switch,
            "false",
            "Only the leader of several replicas writes",
        ),
    ),
    owned_by(
        CAPM3,
        flag(
            "leader-elect-lease-duration",
            Shape::Span,
            "15s",
            "Lease duration: time after which another replica takes over",
        ),
    ),
    owned_by(
        CAPM3,
        flag(
            "leader-elect-renew-deadline",
            Shape::Span,
            "10s",
            "Time after which a leader that cannot renew stops",
        ),
    ),
    owned_by(
        CAPM3,
        flag("leader-elect-retry-period", Shape::Span, "2s", "Pause between attempts"),
    ),
    owned_by(
        TWO,
        handled(BUFFERS, flag("log-flush-frequency", Shape::Span, "5s", "")),
    ),
    owned_by(
        TWO,
        handled(BUFFERS, flag("log-json-info-buffer-size", Shape::Text, "0", "")),
    ),
    owned_by(
        TWO,
        handled(BUFFERS, flag("log-json-split-stream", Shape::Switch, "false", "")),
    ),
    owned_by(
        TWO,
        handled(BUFFERS, flag("log-text-info-buffer-size", Shape::Text, "0", "")),
    ),
    owned_by(
        TWO,
        handled(BUFFERS, flag("log-text-split-stream", Shape::Switch, "false", "")),
    ),
    owned_by(TWO, flag("logging-format", Shape::Text, "text", "`text` or `json`")),
    owned_by(
        HOSTS,
        flag(
            "max-provisioning-retries",
            Shape::Number,
            "5",
            "Maximum deployment attempts of one image on one host; 0 for no limit",
        ),
    ),
    at_once("metal3cluster-concurrency", "Concurrent reconciles of Metal3Clusters"),
    at_once("metal3data-concurrency", "Concurrent reconciles of Metal3Data"),
    at_once(
        "metal3datatemplate-concurrency",
        "Concurrent reconciles of Metal3DataTemplates",
    ),
    refused(CAPM3, "metal3labelsync-concurrency", Shape::Number, "10", NO_SYNC),
    at_once("metal3machine-concurrency", "Concurrent reconciles of Metal3Machines"),
    refused(
        CAPM3,
        "metal3machinetemplate-concurrency",
        Shape::Number,
        "10",
        NO_TEMPLATES,
    ),
    refused(
        CAPM3,
        "metal3remediation-concurrency",
        Shape::Number,
        "10",
        NO_REMEDIATION,
    ),
    owned_by(
        HOSTS,
        handled(
            Handling::Alias("diagnostics-address"),
            flag("metrics-addr", Shape::Text, ":8443", ""),
        ),
    ),
    owned_by(
        ALL,
        flag("namespace", Shape::Text, "", "Watch only this namespace; empty for all"),
    ),
    flag(
        "nudge-control-plane",
        Shape::Switch,
        "false",
        "Trigger an idle Kamaji control plane whose endpoint is in use, by an annotation; requires the permission to \
         patch `kamajicontrolplanes.controlplane.cluster.x-k8s.io`, which no role of a release grants",
    ),
    flag(
        "observe-only",
        Shape::Switch,
        "false",
        "Log the writes instead of performing them",
    ),
    refused(HOSTS, "provisioner", Shape::Text, "ironic", NO_PLUGINS),
    refused(
        CAPM3,
        "skip-crd-migration-phases",
        Shape::List,
        "",
        // differs (`flags-no-migration`): the Go manager rewrites what is stored in an older version.
        Handling::Ignored("this program does not rewrite stored objects, so there is no phase to skip"),
    ),
    owned_by(
        TWO,
        handled(
            // differs (`flags-sync-period`): the Go managers look at everything again after it.
            Handling::Ignored("watches report every change, so there is no periodic resync"),
            flag("sync-period", Shape::Span, "10m", ""),
        ),
    ),
    owned_by(
        ALL,
        flag(
            "tls-cipher-suites",
            Shape::List,
            "",
            "Offered cipher suites of TLS 1.2, by Go's names; empty for all safe ones",
        ),
    ),
    owned_by(
        HOSTS,
        flag(
            "tls-curve-preferences",
            Shape::List,
            "",
            "Offered key exchanges of TLS, by Go's names or numbers: `X25519`, `CurveP256`, `CurveP384`; empty for all",
        ),
    ),
    owned_by(
        HOSTS,
        flag(
            "tls-max-version",
            Shape::Text,
            "",
            "`VersionTLS12` or `VersionTLS13`; empty for the newest",
        ),
    ),
    owned_by(
        ALL,
        flag(
            "tls-min-version",
            Shape::Text,
            "VersionTLS12",
            "`VersionTLS12` or `VersionTLS13`",
        ),
    ),
    owned_by(
        TWO,
        flag(
            "v",
            Shape::Number,
            "0",
            "Log level: 0 to 3 for information, 4 and 5 for reasons, up to 10 for everything",
        ),
    ),
    flag("version", Shape::Switch, "false", "Print the version and exit"),
    owned_by(
        TWO,
        handled(
            Handling::Ignored("all modules have one log level"),
            flag("vmodule", Shape::Text, "", ""),
        ),
    ),
    owned_by(
        TWO,
        flag(
            "watch-filter",
            Shape::Text,
            "",
            "Watch only objects whose label `cluster.x-k8s.io/watch-filter` has this value; empty for all",
        ),
    ),
    owned_by(
        TWO,
        flag(
            "webhook-cert-dir",
            Shape::Text,
            "/tmp/k8s-webhook-server/serving-certs/",
            "Folder with `tls.crt` and `tls.key`, reloaded on change",
        ),
    ),
    flag(
        "webhook-certificates",
        Shape::Text,
        "mounted",
        "`mounted`: read from `--webhook-cert-dir`; `self-managed`: created by this program and stored in a Secret, with \
         the roles of the files `*-components-self-managed.yaml`. A certificate of cert-manager is then left unchanged, \
         and the program does not become ready; not together with `--observe-only`",
    ),
    owned_by(
        ALL,
        flag(
            "webhook-port",
            Shape::Number,
            "9443",
            "Port of the webhooks; 0 to disable",
        ),
    ),
];

/// Finds a flag by name.
#[must_use]
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    TABLE.iter().find(|flag| flag.name == name)
}
