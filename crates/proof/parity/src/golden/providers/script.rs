//! What the user did in each recording. Objects and values are taken from the recorded states: here is only which of
//! them, and when.

/// Something that a user does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// Makes an object as it is in a state, without what others wrote into it.
    Make(&'static str, &'static str, &'static str),
    /// The same, with parts that he wrote and somebody has changed since: places, and values as JSON.
    MakeWith(
        &'static str,
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    ),
    /// Changes the spec of an object to what it is in a state.
    Spec(&'static str, &'static str, &'static str),
    /// Annotates an object, or takes an annotation away.
    Annotate(&'static str, &'static str, &'static str, Option<&'static str>),
    /// Pauses a Cluster, or lets it go on.
    Pause(&'static str, bool),
    /// Deletes an object.
    Delete(&'static str, &'static str),
    /// Gives a Service the status that it has in a state.
    Balance(&'static str),
    /// Makes a control plane with machines for a Cluster in a state, and the template of its machines.
    ControlPlane(&'static str, &'static str),
    /// Starts the API server of a Cluster, with a Node that is called as the host of a state is.
    Workload(&'static str, &'static str),
}

/// What he does at once, which states follow from it, and for how many seconds he looks on then.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) acts: &'static [Act],
    pub(super) states: &'static [&'static str],
    pub(super) looks_on: u32,
}

/// A recording.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) folder: &'static str,
    pub(super) phases: &'static [Phase],
}

use Act::{Annotate, Balance, ControlPlane, Delete, Make, MakeWith, Pause, Spec, Workload};

const CLUSTER: &str = "Cluster";
const METAL3: &str = "Metal3Cluster";
const PLANE: &str = "KamajiControlPlane";
const BYO: &str = "ByoCluster";
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// What no program reads.
const NUDGE: &str = "example.com/nudge";
/// The only object of its kind.
const ONLY: &str = "";
const MIXED: &str = "byoh-cluster";
const EMPTY: &str = "byo-empty";

const fn phase(acts: &'static [Act], states: &'static [&'static str], looks_on: u32) -> Phase {
    Phase { acts, states, looks_on }
}

const COPIED_AT_ONCE: &[Phase] = &[
    phase(TOGETHER, &["00"], 2),
    // Whoever copies is faster than the tenant starts.
    phase(&[Balance("01")], &["01"], 0),
    phase(&[Spec(METAL3, ONLY, "02")], &["02", "03", "04", "05"], 60),
    phase(&[Pause(ONLY, true)], &["06"], 5),
    phase(&[Spec(PLANE, ONLY, "07")], &["07"], 5),
    phase(&[Pause(ONLY, false)], &["08"], 20),
    phase(&[Annotate(PLANE, ONLY, NUDGE, Some("1"))], &["09"], 5),
    phase(
        &[Annotate(PLANE, ONLY, PAUSED, Some("")), Spec(PLANE, ONLY, "10")],
        &["10"],
        5,
    ),
    phase(&[Annotate(PLANE, ONLY, PAUSED, None)], &["11"], 60),
    phase(&[Delete(CLUSTER, ONLY)], &["12", "13", "14", "15"], 20),
];

const DEADLOCK: &[Phase] = &[
    phase(&[Make(CLUSTER, ONLY, "00"), Make(PLANE, ONLY, "00")], &["00"], 2),
    phase(&[Make(METAL3, ONLY, "01"), Balance("02")], &["01", "02", "03"], 60),
    phase(&[Spec(METAL3, ONLY, "04")], &["04"], 5),
    // Nobody does anything: the provider's pause ends.
    phase(&[], &["05"], 20),
];

/// Cluster, its infrastructure and its control plane at once.
const TOGETHER: &[Act] = &[
    Make(CLUSTER, ONLY, "00"),
    Make(METAL3, ONLY, "00"),
    Make(PLANE, ONLY, "00"),
];

const PUBLISHED: &[Phase] = &[
    phase(TOGETHER, &["00", "01"], 5),
    phase(&[Balance("02")], &["02", "03", "04"], 300),
    phase(&[Delete(CLUSTER, ONLY)], &["05", "06", "07", "08", "09", "10"], 20),
];

const MISMATCH: &[Phase] = &[
    phase(TOGETHER, &["00"], 20),
    phase(
        &[Spec(METAL3, ONLY, "01"), Annotate(PLANE, ONLY, NUDGE, Some("1"))],
        &["01"],
        5,
    ),
    phase(
        &[Spec(METAL3, ONLY, "02"), Annotate(PLANE, ONLY, NUDGE, Some("2"))],
        &["02"],
        20,
    ),
];

/// An endpoint of the user's own on the control plane.
const TYPED: &[(&str, &str)] = &[("/spec/controlPlaneEndpoint", r#"{"host":"203.0.113.9","port":7443}"#)];

const TYPED_ON_CONTROL_PLANE: &[Phase] = &[
    phase(
        &[
            Make(CLUSTER, ONLY, "00"),
            Make(METAL3, ONLY, "00"),
            MakeWith(PLANE, ONLY, "00", TYPED),
        ],
        &["00"],
        30,
    ),
    phase(&[Spec(METAL3, ONLY, "01")], &["01"], 5),
    phase(&[Annotate(PLANE, ONLY, NUDGE, Some("1"))], &["02"], 20),
];

const PORT: &[Phase] = &[
    phase(TOGETHER, &["00"], 20),
    phase(&[Delete(CLUSTER, ONLY)], &["01", "02"], 20),
];

const NO_REFERENCE: &[Phase] = &[phase(
    &[Make(CLUSTER, ONLY, "00"), Make(PLANE, ONLY, "00")],
    &["00"],
    20,
)];

const UNSUPPORTED: &[Phase] = &[phase(
    &[
        Make(CLUSTER, ONLY, "00"),
        Make(PLANE, ONLY, "00"),
        Make(BYO, ONLY, "00"),
    ],
    &["00"],
    20,
)];

/// Neither host nor port.
const NOTHING: &[(&str, &str)] = &[("/spec/controlPlaneEndpoint", r#"{"host":"","port":0}"#)];

const BROUGHT: &[Phase] = &[
    phase(
        &[
            Make(CLUSTER, MIXED, "00"),
            Make(METAL3, MIXED, "00"),
            ControlPlane(MIXED, "02"),
        ],
        &["00"],
        15,
    ),
    phase(&[Make(BYO, MIXED, "01")], &["01"], 3),
    phase(
        &[Make(CLUSTER, EMPTY, "02"), MakeWith(BYO, EMPTY, "02", NOTHING)],
        &["02", "03"],
        40,
    ),
    phase(&[Spec(BYO, EMPTY, "04")], &["04"], 10),
    phase(&[Workload(MIXED, "05"), Make("ByoHost", ONLY, "05")], &["05", "06"], 40),
    phase(&[Pause(MIXED, true)], &["07"], 5),
    phase(&[Pause(MIXED, false)], &["08"], 3),
    phase(&[Delete(CLUSTER, MIXED)], &["09", "10"], 10),
    phase(&[Make(METAL3, EMPTY, "11")], &["11"], 5),
    phase(&[Delete(CLUSTER, EMPTY)], &["12"], 20),
];

/// All that are played.
pub(super) const SCRIPTS: [Script; 9] = [
    script("kamaji/copied-at-once-paused-deleted", COPIED_AT_ONCE),
    script("kamaji/deadlock", DEADLOCK),
    script("kamaji/published", PUBLISHED),
    script("kamaji/mismatch", MISMATCH),
    script("kamaji/typed-on-control-plane", TYPED_ON_CONTROL_PLANE),
    script("kamaji/port-40000", PORT),
    script("kamaji/no-infrastructure-ref", NO_REFERENCE),
    script("kamaji/unsupported-kind", UNSUPPORTED),
    script("byoh", BROUGHT),
];

const fn script(folder: &'static str, phases: &'static [Phase]) -> Script {
    Script { folder, phases }
}
