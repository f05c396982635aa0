//! Which room may import which, as a table. A crate that is not in it fails: whoever adds a room says where it stands.

/// A room and the rooms it may import.
pub(super) struct Room {
    /// Package.
    pub(super) name: &'static str,
    /// Packages of the workspace it may import.
    pub(super) imports: &'static [&'static str],
    /// Whether it must reach no runtime and no client, not even through others.
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
const STAND_INS: &[&str] = &[
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
    "metal3-files",
    "metal3-flags",
    "metal3-grants",
    "metal3-manager",
    "metal3-sandbox",
    "metal3-sim-cluster",
    "metal3-sim-ironic",
    "metal3-sim-capi",
    "metal3-sim-bmc",
];

/// The house. Tests are not bound by it: there, products may use simulators.
pub(super) const ROOMS: &[Room] = &[
    pure("metal3-domain", &[]),
    pure("metal3-sim-faults", VOCABULARY),
    pure("metal3-schema", VOCABULARY),
    pure("metal3-api", VOCABULARY),
    // It judges, so it knows nobody.
    pure("metal3-ledger", &[]),
    // Words for every world, so it knows none.
    pure("metal3-scenario", &[]),
    room("metal3-runtime", KINDS),
    room("metal3-capi", &["metal3-domain", "metal3-api", "metal3-runtime"]),
    // Not `runtime`: both take the clock from `domain`.
    room("metal3-ironic", KINDS),
    // Products meet in API objects, never in each other's code.
    room("metal3-hosts", FOUNDATION),
    room("metal3-ipam", FOUNDATION),
    room("metal3-capm3", FOUNDATION),
    room("metal3-webhooks", FOUNDATION),
    pure("metal3-files", &[]),
    pure("metal3-flags", &[]),
    room(
        "metal3-grants",
        &[
            "metal3-runtime",
            "metal3-hosts",
            "metal3-ipam",
            "metal3-capm3",
            "metal3-webhooks",
        ],
    ),
    // Stand-ins know no product, or a test would hold a product against itself.
    room("metal3-sim-cluster", STAND_INS),
    room("metal3-sim-ironic", STAND_INS),
    room("metal3-sim-capi", STAND_INS),
    room("metal3-sim-bmc", STAND_INS),
    // A suite judges a simulator and the real part, so it imports no product.
    room("metal3-conformance-cluster", STAND_INS),
    room("metal3-conformance-ironic", STAND_INS),
    // Tries a product against the stand-ins without knowing which.
    room("metal3-harness", STAND_INS),
    // The sandbox is an optional feature of the binary: products on simulators.
    room("metal3-sandbox", EVERYTHING),
    room("metal3-manager", EVERYTHING),
    room("metal3-parity", EVERYTHING),
    room("metal3-scenario-runner", EVERYTHING),
    room(
        "xtask",
        &[
            "metal3-api",
            "metal3-runtime",
            "metal3-webhooks",
            "metal3-files",
            "metal3-flags",
            "metal3-grants",
        ],
    ),
    // The real world judges products from outside, so it imports none. Other providers are the stand-ins here, too.
    room(
        "metal3-e2e-stack",
        &[
            "metal3-domain",
            "metal3-api",
            "metal3-sim-capi",
            "metal3-ledger",
            "metal3-scenario",
        ],
    ),
    room("metal3-e2e-kubelet", &[]),
    room("metal3-e2e-witness", &[]),
    room(
        "metal3-ironic-life",
        &["metal3-domain", "metal3-ironic", "metal3-sim-bmc"],
    ),
    // The API server is the simulated one there, and what listens between product and Ironic is a simulator's door.
    room(
        "metal3-e2e-hosts",
        &[
            "metal3-domain",
            "metal3-api",
            "metal3-ironic",
            "metal3-ironic-life",
            "metal3-sim-ironic",
            "metal3-sim-bmc",
            "metal3-ledger",
            "metal3-sim-cluster",
        ],
    ),
];

/// What `xtask` must not reach, not even through other packages: it builds in seconds and writes what is released.
pub(super) const SIMULATORS: &[&str] = &[
    "metal3-sim-faults",
    "metal3-sim-cluster",
    "metal3-sim-ironic",
    "metal3-sim-capi",
    "metal3-sim-bmc",
];

/// What a pure room must not reach: a runtime, or a client of anything.
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

const fn room(name: &'static str, imports: &'static [&'static str]) -> Room {
    Room {
        name,
        imports,
        pure: false,
    }
}

const fn pure(name: &'static str, imports: &'static [&'static str]) -> Room {
    Room {
        name,
        imports,
        pure: true,
    }
}
