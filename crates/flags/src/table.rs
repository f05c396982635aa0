//! Every flag that is known, whatever becomes of it.

use super::entry::{
    ALL, BUFFERS, CAPM3, HOSTS, IPAM, NO_BUILDER, NO_CLAIMS, NO_PLUGINS, NO_REMEDIATION, NO_SYNC, NO_TEMPLATES, TWO,
    at_once, but, flag, of, refused,
};
use super::flag::{Fate, Flag, Shape};

/// Every flag, by name.
pub const TABLE: &[Flag] = &[
    // differs (`cluster-attached`): the Go manager adopts nothing.
    flag(
        "adopt-same-name-clusters",
        Shape::Switch,
        "false",
        "Let a Metal3Cluster that names no Cluster join the one whose infrastructure is of another kind and called as it \
         is; it then goes and moves with that Cluster",
    ),
    refused(HOSTS, "build-preprov-image", Shape::Switch, "false", NO_BUILDER),
    of(
        CAPM3,
        flag(
            "clustercache-client-burst",
            Shape::Number,
            "30",
            "Requests to a workload cluster that may follow each other without a pause, where `--clustercache-client-qps` \
             is given",
        ),
    ),
    of(
        CAPM3,
        flag(
            "clustercache-client-qps",
            Shape::Number,
            "0",
            "Requests a second to each workload cluster; 0 for no limit of ours. The Go manager's default is 20",
        ),
    ),
    of(
        HOSTS,
        flag(
            "controller-concurrency",
            Shape::Number,
            "0",
            "Hosts that are worked on at once; 0 for what the environment variable `BMO_CONCURRENCY` says, else 8",
        ),
    ),
    flag(
        "controllers",
        Shape::List,
        "",
        "Which controllers run: `ipam`, `capm3`, `hosts`, or several of them. Required",
    ),
    // differs (`hosts-deprovision-budget`): the Go manager tears down whatever it is told to, however much that is.
    flag(
        "deprovision-budget",
        Shape::Number,
        "100",
        "How many provisioned hosts of a namespace may be torn down in an hour; those beyond it wait until they are \
         confirmed, each by the annotation `baremetalhost.metal3.io/confirm-deprovision`",
    ),
    of(
        HOSTS,
        but(
            Fate::Ignored("--v and --logging-format say how much is logged, and how"),
            flag("dev", Shape::Switch, "false", ""),
        ),
    ),
    of(
        TWO,
        flag(
            "diagnostics-address",
            Shape::Text,
            ":8443",
            "Where metrics and the log level are served; `0` for nowhere",
        ),
    ),
    of(
        CAPM3,
        flag(
            "enable-bmh-name-based-preallocation",
            Shape::Switch,
            "false",
            "Name new claims on IPPools after the host instead of the Metal3Data, so that a pool can keep an address for a \
             host",
        ),
    ),
    of(
        HOSTS,
        but(
            Fate::Means("leader-elect"),
            flag("enable-leader-election", Shape::Switch, "false", ""),
        ),
    ),
    flag(
        "force-controllers",
        Shape::Switch,
        "false",
        "Run even while the Go manager of the same controllers does",
    ),
    flag(
        "foreign-deployments",
        Shape::List,
        "",
        "Where the Go manager is looked for that must not run beside this program, as `ipam=NAMESPACE/NAME`; empty for \
         where its release installs it, such as `ipam=metal3-ipam-system/ipam-controller-manager`. The role of this program \
         grants to look at that name alone: another one has to be added there",
    ),
    of(
        ALL,
        flag(
            "health-addr",
            Shape::Text,
            ":9440",
            "Where `/healthz` and `/readyz` are served; `0` for nowhere",
        ),
    ),
    flag("help", Shape::Switch, "false", "Print the flags and end"),
    refused(HOSTS, "hostclaims", Shape::Switch, "false", NO_CLAIMS),
    of(
        TWO,
        flag(
            "insecure-diagnostics",
            Shape::Switch,
            "false",
            "Serve metrics without TLS and to everybody, and nothing else",
        ),
    ),
    of(
        IPAM,
        flag(
            "ippool-concurrency",
            Shape::Number,
            "10",
            "Pools that are worked on at once",
        ),
    ),
    of(
        ALL,
        flag(
            "kube-api-burst",
            Shape::Number,
            "30",
            "Requests that may follow each other without a pause, where `--kube-api-qps` is given",
        ),
    ),
    of(
        ALL,
        flag(
            "kube-api-qps",
            Shape::Number,
            "0",
            "Requests a second; 0 for no limit of ours: the API server has its own. The Go managers' default is 20",
        ),
    ),
    of(
        ALL,
        flag(
            "kubeconfig",
            Shape::Text,
            "",
            "File that says where the API server is; empty in a Pod",
        ),
    ),
    flag(
        "lab-fake-hardware",
        Shape::Switch,
        "false",
        "Let hosts in that have no machine, by BMC addresses such as `fake://1`. For laboratories",
    ),
    of(
        TWO,
        flag(
            "leader-elect",
            Shape::Switch,
            "false",
            "Of several replicas, only one writes",
        ),
    ),
    of(
        CAPM3,
        flag(
            "leader-elect-lease-duration",
            Shape::Span,
            "15s",
            "How long others wait for a leader that is silent",
        ),
    ),
    of(
        CAPM3,
        flag(
            "leader-elect-renew-deadline",
            Shape::Span,
            "10s",
            "How long a leader goes on that cannot renew",
        ),
    ),
    of(
        CAPM3,
        flag(
            "leader-elect-retry-period",
            Shape::Span,
            "2s",
            "The pause between attempts",
        ),
    ),
    of(TWO, but(BUFFERS, flag("log-flush-frequency", Shape::Span, "5s", ""))),
    of(
        TWO,
        but(BUFFERS, flag("log-json-info-buffer-size", Shape::Text, "0", "")),
    ),
    of(
        TWO,
        but(BUFFERS, flag("log-json-split-stream", Shape::Switch, "false", "")),
    ),
    of(
        TWO,
        but(BUFFERS, flag("log-text-info-buffer-size", Shape::Text, "0", "")),
    ),
    of(
        TWO,
        but(BUFFERS, flag("log-text-split-stream", Shape::Switch, "false", "")),
    ),
    of(TWO, flag("logging-format", Shape::Text, "text", "`text` or `json`")),
    of(
        HOSTS,
        flag(
            "max-provisioning-retries",
            Shape::Number,
            "5",
            "How often the deployment of one image on one host is tried; 0 for ever",
        ),
    ),
    at_once("metal3cluster-concurrency", "Metal3Clusters that are worked on at once"),
    at_once("metal3data-concurrency", "Metal3Data that are worked on at once"),
    at_once(
        "metal3datatemplate-concurrency",
        "Metal3DataTemplates that are worked on at once",
    ),
    refused(CAPM3, "metal3labelsync-concurrency", Shape::Number, "10", NO_SYNC),
    at_once("metal3machine-concurrency", "Metal3Machines that are worked on at once"),
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
    of(
        HOSTS,
        but(
            Fate::Means("diagnostics-address"),
            flag("metrics-addr", Shape::Text, ":8443", ""),
        ),
    ),
    of(
        ALL,
        flag(
            "namespace",
            Shape::Text,
            "",
            "Only objects of this namespace; empty for all",
        ),
    ),
    flag(
        "nudge-control-plane",
        Shape::Switch,
        "false",
        "Wake a Kamaji control plane that sleeps although its endpoint was taken, by an annotation; needs the right to \
         patch `kamajicontrolplanes.controlplane.cluster.x-k8s.io`, which no role of a release has",
    ),
    flag(
        "observe-only",
        Shape::Switch,
        "false",
        "Decide and print what would be written, and write nothing",
    ),
    refused(HOSTS, "provisioner", Shape::Text, "ironic", NO_PLUGINS),
    refused(
        CAPM3,
        "skip-crd-migration-phases",
        Shape::List,
        "",
        // differs (`flags-no-migration`): the Go manager rewrites what is stored in an older version.
        Fate::Ignored("stored objects are not rewritten by this program, so there is no phase to skip"),
    ),
    of(
        TWO,
        but(
            // differs (`flags-sync-period`): the Go managers look at everything again after it.
            Fate::Ignored("watches tell every change, so nothing is looked at again by the clock"),
            flag("sync-period", Shape::Span, "10m", ""),
        ),
    ),
    of(
        ALL,
        flag(
            "tls-cipher-suites",
            Shape::List,
            "",
            "Cipher suites of TLS 1.2 that are offered, by Go's names; empty for all that are safe",
        ),
    ),
    of(
        HOSTS,
        flag(
            "tls-curve-preferences",
            Shape::List,
            "",
            "Key exchanges of TLS that are offered, by Go's names or numbers: `X25519`, `CurveP256`, `CurveP384`; empty for all",
        ),
    ),
    of(
        HOSTS,
        flag(
            "tls-max-version",
            Shape::Text,
            "",
            "`VersionTLS12` or `VersionTLS13`; empty for the newest",
        ),
    ),
    of(
        ALL,
        flag(
            "tls-min-version",
            Shape::Text,
            "VersionTLS12",
            "`VersionTLS12` or `VersionTLS13`",
        ),
    ),
    of(
        TWO,
        flag(
            "v",
            Shape::Number,
            "0",
            "How much is logged: 0 to 3, 4 and 5 for why, up to 10 for everything",
        ),
    ),
    flag("version", Shape::Switch, "false", "Print the version and end"),
    of(
        TWO,
        but(
            Fate::Ignored("the level is one for all parts"),
            flag("vmodule", Shape::Text, "", ""),
        ),
    ),
    of(
        TWO,
        flag(
            "watch-filter",
            Shape::Text,
            "",
            "Only objects whose label `cluster.x-k8s.io/watch-filter` has this value; empty for all",
        ),
    ),
    of(
        TWO,
        flag(
            "webhook-cert-dir",
            Shape::Text,
            "/tmp/k8s-webhook-server/serving-certs/",
            "Folder with `tls.crt` and `tls.key`, which are read again when they change",
        ),
    ),
    flag(
        "webhook-certificates",
        Shape::Text,
        "mounted",
        "`mounted`: read from `--webhook-cert-dir`; `self-managed`: made by this program and kept in a Secret, with the \
         roles of the files `*-components-self-managed.yaml`. What cert-manager keeps is then left alone, and the program does \
         not become ready; not together with `--observe-only`",
    ),
    of(
        ALL,
        flag(
            "webhook-port",
            Shape::Number,
            "9443",
            "Where the API server asks about objects; 0 for nowhere",
        ),
    ),
];

/// The flag of a name.
#[must_use]
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    TABLE.iter().find(|flag| flag.name == name)
}
