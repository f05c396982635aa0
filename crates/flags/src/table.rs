//! The table of flags.

use super::entry::{
    ALL, BUFFERS, CAPM3, HOSTS, IPAM, NO_GO_MANAGER, NO_PLUGINS, TWO, WITH_MACHINES, list, number, span, switch, text,
};
use super::flag::{Flag, Handling};

/// Every flag, sorted by name.
pub const TABLE: &[Flag] = &[
    // differs (`host-node-by-name`): the Go manager always does.
    switch(
        NO_GO_MANAGER,
        "adopt-plain-node-names",
        "Take a node of Ironic that has the name of a host without its namespace as the node of that host, as the first \
         releases of the Go manager named them; a host of another namespace with the same name can then take it",
    ),
    // differs (`cluster-attached`): the Go manager adopts nothing.
    switch(
        NO_GO_MANAGER,
        "adopt-same-name-clusters",
        "Let a Metal3Cluster without a Cluster join the Cluster whose infrastructure has another kind and the same \
         name; it is then deleted and moved with that Cluster",
    ),
    // differs (`ironic-login-encrypted`): the Go manager sends it.
    switch(
        NO_GO_MANAGER,
        "allow-insecure-ironic",
        "Send the login of Ironic over `http://` too, where everyone on the network can read it. Without the flag that is an \
         error at the start, except with an Ironic on the same machine",
    ),
    // differs (`destinations-allowed`): the Go managers allow any destination.
    list(
        NO_GO_MANAGER,
        "allowed-bmc-networks",
        "Networks with the BMCs of hosts, such as `192.0.2.0/24`; empty for all. A host with another BMC address, or with \
         a name in it, is rejected and not registered, and Ironic receives no request to change its node",
    ),
    list(
        NO_GO_MANAGER,
        "allowed-image-hosts",
        "Hosts of images and of files with checksums: names, domains such as `.example.org`, addresses, networks such as \
         `192.0.2.0/24`; empty for all. A host, machine or machine template with another image is rejected; a host is neither \
         deployed with it nor deprovisioned for it. Ironic follows redirects of an allowed host",
    ),
    list(
        NO_GO_MANAGER,
        "allowed-workload-endpoints",
        "API servers of workload clusters, in the same form; empty for all. With a network, the address that a name has \
         when the connection is opened counts",
    ),
    // differs (`host-secret-labelled`): the Go manager uses any.
    text(
        NO_GO_MANAGER,
        "bmc-secrets",
        "labelled",
        "Secrets that a host may name as the login of its BMC and the network data of its agent: `labelled` for those \
         with the label `environment.metal3.io: baremetal` and those in use before, `any` for every Secret of the \
         namespace, as the Go manager does; a user who may edit a host can then send any of them to an address of his choice",
    ),
    switch(
        HOSTS,
        "build-preprov-image",
        "Request a PreprovisioningImage for each host that boots the agent, and boot what it names. `DEPLOY_*` serves them; \
         those of architectures without any are left to another builder",
    ),
    number(
        CAPM3,
        "clustercache-client-burst",
        "30",
        "Burst of requests to a workload cluster, with `--clustercache-client-qps`",
    ),
    number(
        CAPM3,
        "clustercache-client-qps",
        "0",
        "Requests per second to each workload cluster; 0 for no client-side limit. The Go manager's default is 20",
    ),
    number(
        HOSTS,
        "controller-concurrency",
        "0",
        "Concurrent reconciles of hosts; 0 for the environment variable `BMO_CONCURRENCY`, or 8",
    ),
    list(
        NO_GO_MANAGER,
        "controllers",
        "Enabled controllers: `ipam`, `capm3`, `hosts`, or several of them. Required",
    ),
    switch(HOSTS, "demo-mode", "").handled(NO_PLUGINS),
    // differs (`hosts-deprovision-budget`): the Go manager deprovisions any number of hosts.
    number(
        NO_GO_MANAGER,
        "deprovision-budget",
        "100",
        "Maximum number of provisioned hosts of a namespace that are deprovisioned per hour; further hosts wait for \
         the annotation `baremetalhost.metal3.io/confirm-deprovision`",
    ),
    switch(HOSTS, "dev", "").handled(Handling::Ignored(
        "--v and --logging-format set level and format of the log",
    )),
    text(
        TWO,
        "diagnostics-address",
        ":8443",
        "Address of the metrics and the log level; `0` to disable",
    ),
    switch(
        CAPM3,
        "enable-bmh-name-based-preallocation",
        "Name new claims on IPPools after the host instead of the Metal3Data, so that a pool can preallocate an \
         address for a host",
    ),
    switch(HOSTS, "enable-leader-election", "").handled(Handling::Alias("leader-elect")),
    // Releases of the Go manager up to 1.12 spell it so.
    switch(CAPM3, "enableBMHNameBasedPreallocation", "")
        .handled(Handling::Alias("enable-bmh-name-based-preallocation")),
    switch(
        NO_GO_MANAGER,
        "force-controllers",
        "Run even if the Go manager of the same controllers runs",
    ),
    list(
        NO_GO_MANAGER,
        "foreign-deployments",
        "Deployments of Go managers that must not run at the same time, as `ipam=NAMESPACE/NAME`; by default those of \
         their releases, such as `ipam=metal3-ipam-system/ipam-controller-manager`. The role of this program permits only \
         the default names: add any other one",
    ),
    text(
        ALL,
        "health-addr",
        ":9440",
        "Address of `/healthz` and `/readyz`; `0` to disable",
    ),
    switch(NO_GO_MANAGER, "help", "Print the flags and exit"),
    switch(
        HOSTS,
        "hostclaims",
        "Serve HostClaims: bind hosts that a HostDeployPolicy opens to them, and give those the spec of the claim",
    ),
    switch(
        TWO,
        "insecure-diagnostics",
        "Serve metrics without TLS and authentication, and nothing else",
    ),
    number(IPAM, "ippool-concurrency", "10", "Concurrent reconciles of pools"),
    switch(
        NO_GO_MANAGER,
        "join-preflight",
        "Look, with the kubeconfig of a Cluster whose control plane is not of kubeadm, for what its workers need to join; the \
         condition `WorkerJoinPreflight` of the Metal3Cluster names what is missing. Nothing waits for it",
    ),
    number(ALL, "kube-api-burst", "30", "Burst of requests, with `--kube-api-qps`"),
    number(
        ALL,
        "kube-api-qps",
        "0",
        "Requests per second; 0 for no client-side limit, because the API server has its own. The Go managers' \
         default is 20",
    ),
    text(ALL, "kubeconfig", "", "Kubeconfig file; empty in a Pod"),
    switch(
        NO_GO_MANAGER,
        "lab-fake-hardware",
        "Accept hosts without a machine, with BMC addresses such as `fake://1`. For test environments",
    ),
    switch(TWO, "leader-elect", "Only the leader of several replicas writes"),
    span(
        CAPM3,
        "leader-elect-lease-duration",
        "15s",
        "Lease duration: time after which another replica takes over",
    ),
    span(
        CAPM3,
        "leader-elect-renew-deadline",
        "10s",
        "Time after which a leader that cannot renew stops",
    ),
    span(CAPM3, "leader-elect-retry-period", "2s", "Pause between attempts"),
    text(
        HOSTS,
        "lease-duration-seconds",
        "",
        "`--leader-elect-lease-duration` in whole seconds; it has precedence",
    ),
    span(TWO, "log-flush-frequency", "5s", "").handled(BUFFERS),
    text(TWO, "log-json-info-buffer-size", "0", "").handled(BUFFERS),
    switch(TWO, "log-json-split-stream", "").handled(BUFFERS),
    text(TWO, "log-text-info-buffer-size", "0", "").handled(BUFFERS),
    switch(TWO, "log-text-split-stream", "").handled(BUFFERS),
    text(TWO, "logging-format", "text", "`text` or `json`"),
    number(
        HOSTS,
        "max-provisioning-retries",
        "5",
        "Maximum deployment attempts of one image on one host; 0 for no limit",
    ),
    number(
        CAPM3,
        "metal3cluster-concurrency",
        "10",
        "Concurrent reconciles of Metal3Clusters",
    ),
    number(
        CAPM3,
        "metal3data-concurrency",
        "10",
        "Concurrent reconciles of Metal3Data",
    ),
    number(
        CAPM3,
        "metal3datatemplate-concurrency",
        "10",
        "Concurrent reconciles of Metal3DataTemplates",
    ),
    number(CAPM3, "metal3labelsync-concurrency", "10", "").handled(WITH_MACHINES),
    number(
        CAPM3,
        "metal3machine-concurrency",
        "10",
        "Concurrent reconciles of Metal3Machines",
    ),
    number(
        CAPM3,
        "metal3machinetemplate-concurrency",
        "10",
        "Concurrent reconciles of Metal3MachineTemplates",
    ),
    number(
        CAPM3,
        "metal3remediation-concurrency",
        "10",
        "Concurrent reconciles of Metal3Remediations",
    ),
    text(HOSTS, "metrics-addr", ":8443", "").handled(Handling::Alias("diagnostics-address")),
    text(ALL, "namespace", "", "Watch only this namespace; empty for all"),
    switch(
        NO_GO_MANAGER,
        "nudge-control-plane",
        "Trigger an idle Kamaji control plane whose endpoint is in use, by an annotation; requires the permission to \
         patch `kamajicontrolplanes.controlplane.cluster.x-k8s.io`, which no role of a release grants",
    ),
    switch(
        NO_GO_MANAGER,
        "observe-only",
        "Log the writes instead of performing them",
    ),
    text(HOSTS, "provisioner", "ironic", "").handled(NO_PLUGINS),
    text(
        HOSTS,
        "renew-deadline-seconds",
        "",
        "`--leader-elect-renew-deadline` in whole seconds; it has precedence",
    ),
    text(
        HOSTS,
        "retry-period-seconds",
        "",
        "`--leader-elect-retry-period` in whole seconds; it has precedence",
    ),
    // differs (`flags-no-migration`): the Go manager rewrites what is stored in an older version.
    list(CAPM3, "skip-crd-migration-phases", "").handled(Handling::Ignored(
        "this program does not rewrite stored objects, so there is no phase to skip",
    )),
    // differs (`state-objectives`): the Go managers have no objectives.
    list(
        NO_GO_MANAGER,
        "state-objectives",
        "How long a host or machine stays in a state at most while all is well, for the metrics \
         `metal3_hosts_above_objective` and `metal3_machines_above_objective`: `host/STATE=DURATION` or \
         `machine/STATE=DURATION`; `0` for no objective. The others keep the defaults of [metrics.md](metrics.md)",
    ),
    // differs (`flags-sync-period`): the Go managers reconcile all objects again after it.
    span(TWO, "sync-period", "10m", "").handled(Handling::Ignored(
        "watches report every change, so there is no periodic resync",
    )),
    switch(HOSTS, "test-mode", "").handled(NO_PLUGINS),
    list(
        ALL,
        "tls-cipher-suites",
        "Offered cipher suites of TLS 1.2, by Go's names; empty for all safe ones",
    ),
    list(
        HOSTS,
        "tls-curve-preferences",
        "Offered key exchanges of TLS, by Go's names or numbers: `X25519`, `CurveP256`, `CurveP384`; empty for all",
    ),
    text(
        HOSTS,
        "tls-max-version",
        "",
        "`VersionTLS12` or `VersionTLS13`; empty for the newest",
    ),
    text(
        ALL,
        "tls-min-version",
        "VersionTLS12",
        "`VersionTLS12` or `VersionTLS13`",
    ),
    number(
        TWO,
        "v",
        "0",
        "Log level: 0 to 3 for information, 4 and 5 for reasons, up to 10 for everything",
    ),
    switch(NO_GO_MANAGER, "version", "Print the version and exit"),
    text(TWO, "vmodule", "", "").handled(Handling::Ignored("all modules have one log level")),
    text(
        TWO,
        "watch-filter",
        "",
        "Watch only objects whose label `cluster.x-k8s.io/watch-filter` has this value; empty for all",
    ),
    text(
        TWO,
        "webhook-cert-dir",
        "/tmp/k8s-webhook-server/serving-certs/",
        "Folder with `tls.crt` and `tls.key`, reloaded on change",
    ),
    text(
        NO_GO_MANAGER,
        "webhook-certificates",
        "mounted",
        "`mounted`: read from `--webhook-cert-dir`; `self-managed`: created by this program and stored in a Secret, with \
         the roles of the files `*-components-self-managed.yaml`. A certificate of cert-manager is then left unchanged, \
         and the program does not become ready; not together with `--observe-only`",
    ),
    text(
        NO_GO_MANAGER,
        "webhook-client-ca-file",
        "",
        "File with the CA of the client certificate of the API server, read at the start. Admission reviews without such a \
         certificate are then rejected; conversion reviews are not, because the API server sends none with them",
    ),
    list(
        NO_GO_MANAGER,
        "webhook-client-names",
        "Accepted common names of the client certificate, with `--webhook-client-ca-file`; empty for every one",
    ),
    number(ALL, "webhook-port", "9443", "Port of the webhooks; 0 to disable"),
];

/// Finds a flag by name.
#[must_use]
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    TABLE.iter().find(|flag| flag.name == name)
}
