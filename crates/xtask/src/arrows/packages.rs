//! Table of permitted dependencies. A package that is not listed fails the check.

/// A package and its permitted dependencies.
pub(super) struct Package {
    /// Name.
    pub(super) name: &'static str,
    /// Permitted dependencies in the workspace.
    pub(super) imports: &'static [&'static str],
    /// Whether it must not reach an async runtime or a client, directly or transitively.
    pub(super) pure: bool,
}

const VOCABULARY: &[&str] = &["metal3-domain"];
const KINDS: &[&str] = &["metal3-domain", "metal3-api"];
const FOUNDATION: &[&str] = &[
    "metal3-domain",
    "metal3-api",
    "metal3-runtime",
    "metal3-capi",
    "metal3-ironic",
];
const SIMULATION: &[&str] = &[
    "metal3-domain",
    "metal3-api",
    "metal3-runtime",
    "metal3-capi",
    "metal3-ironic",
    "metal3-schema",
    "metal3-sim-faults",
    "metal3-sim-cluster",
    "metal3-sim-ironic",
    "metal3-sim-capi",
    "metal3-sim-bmc",
];
const EVERYTHING: &[&str] = &[
    "metal3-domain",
    "metal3-api",
    "metal3-runtime",
    "metal3-capi",
    "metal3-ironic",
    "metal3-schema",
    "metal3-sim-faults",
    "metal3-ledger",
    "metal3-scenario",
    "metal3-hosts",
    "metal3-ipam",
    "metal3-capm3",
    "metal3-webhooks",
    "metal3-explain",
    "metal3-console",
    "metal3-preflight",
    "metal3-files",
    "metal3-flags",
    "metal3-grants",
    "metal3-monitoring",
    "metal3-manager",
    "metal3-sandbox",
    "metal3-sim-cluster",
    "metal3-sim-ironic",
    "metal3-sim-capi",
    "metal3-sim-bmc",
];

/// Permitted dependencies. Tests are exempt: those of products may use simulators.
pub(super) const PACKAGES: &[Package] = &[
    pure("metal3-domain", &[]),
    pure("metal3-sim-faults", VOCABULARY),
    pure("metal3-schema", VOCABULARY),
    pure("metal3-api", VOCABULARY),
    // Independent of all products.
    pure("metal3-ledger", &[]),
    // Independent of the environment: a cause that a script names is found by explanations, which are pure.
    pure("metal3-scenario", &["metal3-explain"]),
    package("metal3-runtime", KINDS),
    package("metal3-capi", &["metal3-domain", "metal3-api", "metal3-runtime"]),
    // Not `runtime`: both use the clock of `domain`.
    package("metal3-ironic", KINDS),
    // Its first line has to come within seconds on a new machine.
    pure("metal3-run-tests", &[]),
    // Products interact through API objects only.
    package("metal3-hosts", FOUNDATION),
    package("metal3-ipam", FOUNDATION),
    package("metal3-capm3", FOUNDATION),
    package("metal3-webhooks", FOUNDATION),
    // Independent of the products: it explains their reasons from a table.
    pure("metal3-explain", KINDS),
    // What it shows is in the words of explanations, and in no others.
    package(
        "metal3-console",
        &["metal3-domain", "metal3-api", "metal3-runtime", "metal3-explain"],
    ),
    // Independent of the products too: their rules about features reach it as functions.
    pure("metal3-preflight", &["metal3-domain", "metal3-api", "metal3-flags"]),
    // Independent of the products too: tests compare its table with their registry.
    pure("metal3-monitoring", VOCABULARY),
    pure("metal3-files", &[]),
    pure("metal3-flags", &["metal3-domain"]),
    package(
        "metal3-grants",
        &[
            "metal3-runtime",
            "metal3-hosts",
            "metal3-ipam",
            "metal3-capm3",
            "metal3-webhooks",
        ],
    ),
    // Simulators depend on no product: tests compare products with them.
    package("metal3-sim-cluster", SIMULATION),
    package("metal3-sim-ironic", SIMULATION),
    package("metal3-sim-capi", SIMULATION),
    package("metal3-sim-bmc", SIMULATION),
    // A suite checks a simulator and the real service, so it depends on no product.
    package("metal3-conformance-cluster", SIMULATION),
    package("metal3-conformance-ironic", SIMULATION),
    // Checks products on simulators, and depends on no product.
    package("metal3-harness", SIMULATION),
    // The sandbox is an optional feature of the binary: products on simulators.
    package("metal3-sandbox", EVERYTHING),
    package("metal3-manager", EVERYTHING),
    // Compares the sandbox with a real API server, whose webhooks it serves.
    package(
        "metal3-kubectl-suite",
        &[
            "metal3-domain",
            "metal3-api",
            "metal3-runtime",
            "metal3-webhooks",
            "metal3-sandbox",
            "metal3-conformance-cluster",
        ],
    ),
    package("metal3-parity", EVERYTHING),
    package("metal3-scenario-runner", EVERYTHING),
    package("metal3-console-test", EVERYTHING),
    // Fuzz targets for the parsers of all packages.
    package("metal3-fuzz", EVERYTHING),
    package(
        "xtask",
        &[
            "metal3-domain",
            "metal3-api",
            "metal3-runtime",
            "metal3-webhooks",
            "metal3-explain",
            "metal3-files",
            "metal3-flags",
            "metal3-grants",
            "metal3-monitoring",
        ],
    ),
    // End-to-end tests run the released program, so they depend on no product. Other providers are simulated there too.
    package(
        "metal3-e2e-stack",
        &[
            "metal3-domain",
            "metal3-api",
            "metal3-sim-capi",
            "metal3-ledger",
            "metal3-scenario",
            "metal3-ironic-life",
        ],
    ),
    package("metal3-e2e-kubelet", &[]),
    package("metal3-e2e-test-server", &[]),
    package(
        "metal3-ironic-life",
        &["metal3-domain", "metal3-ironic", "metal3-sim-bmc", "metal3-sim-ironic"],
    ),
    // The released program on a real API server; Ironic is simulated, in a process of its own.
    package(
        "metal3-e2e-scale",
        &[
            "metal3-api",
            "metal3-ironic-life",
            "metal3-ledger",
            "metal3-sim-bmc",
            "metal3-sim-ironic",
        ],
    ),
    package(
        "metal3-e2e-tenants",
        &["metal3-ironic-life", "metal3-sim-bmc", "metal3-sim-ironic"],
    ),
    // The API server is simulated there; a simulator proxies the requests to Ironic.
    package(
        "metal3-e2e-hosts",
        &[
            "metal3-domain",
            "metal3-api",
            "metal3-explain",
            "metal3-ironic",
            "metal3-ironic-life",
            "metal3-sim-faults",
            "metal3-sim-ironic",
            "metal3-sim-bmc",
            "metal3-ledger",
            "metal3-sim-cluster",
        ],
    ),
];

/// Packages that `xtask` must not reach, directly or transitively: it has to build quickly.
pub(super) const SIMULATORS: &[&str] = &[
    "metal3-sim-faults",
    "metal3-sim-cluster",
    "metal3-sim-ironic",
    "metal3-sim-capi",
    "metal3-sim-bmc",
];

/// What a pure package must not reach: an async runtime, or a client.
pub(super) const IMPURE: &[&str] = &[
    "tokio",
    "async-std",
    "reqwest",
    "hyper",
    "hyper-util",
    "kube",
    "kube-client",
    "kube-runtime",
];

const fn package(name: &'static str, imports: &'static [&'static str]) -> Package {
    Package {
        name,
        imports,
        pure: false,
    }
}

const fn pure(name: &'static str, imports: &'static [&'static str]) -> Package {
    Package {
        name,
        imports,
        pure: true,
    }
}
