//! User actions of each recording. Objects and values come from the recorded states.

/// A user action.
#[derive(Debug, Clone, Copy)]
pub(super) enum UserAction {
    /// Creates an object as in a state, without fields of other writers.
    Create(&'static str, &'static str, &'static str),
    /// The same, with fields that changed later: pointers, and values as JSON.
    CreateWith(
        &'static str,
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    ),
    /// Sets the spec of an object as in a state.
    Spec(&'static str, &'static str, &'static str),
    /// Sets or removes an annotation.
    Annotate(&'static str, &'static str, &'static str, Option<&'static str>),
    /// Pauses or resumes a Cluster.
    Pause(&'static str, bool),
    /// Deletes an object.
    Delete(&'static str, &'static str),
    /// Sets the status of a Service as in a state.
    Balance(&'static str),
    /// Creates a control plane with machines for a Cluster in a state, and its machine template.
    ControlPlane(&'static str, &'static str),
    /// Starts the API server of a Cluster, with a Node named after the host of a state.
    Workload(&'static str, &'static str),
}

/// Simultaneous actions, the following states, and the seconds of observation after them.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) actions: &'static [UserAction],
    pub(super) states: &'static [&'static str],
    pub(super) observe_seconds: u32,
}

/// A recording.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) folder: &'static str,
    pub(super) phases: &'static [Phase],
}

use UserAction::{Annotate, Balance, ControlPlane, Create, CreateWith, Delete, Pause, Spec, Workload};

const CLUSTER: &str = "Cluster";
const METAL3: &str = "Metal3Cluster";
const PLANE: &str = "KamajiControlPlane";
const BYO: &str = "ByoCluster";
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// An annotation without effect, to trigger a reconcile.
const TRIGGER: &str = "example.com/nudge";
/// The only object of its kind.
const ONLY: &str = "";
const MIXED: &str = "byoh-cluster";
const EMPTY: &str = "byo-empty";

const fn phase(actions: &'static [UserAction], states: &'static [&'static str], observe_seconds: u32) -> Phase {
    Phase {
        actions,
        states,
        observe_seconds,
    }
}

const COPIED_AT_ONCE: &[Phase] = &[
    phase(ALL_AT_ONCE, &["00"], 2),
    // Not observed: the user copies the endpoint before the tenant starts.
    phase(&[Balance("01")], &["01"], 0),
    phase(&[Spec(METAL3, ONLY, "02")], &["02", "03", "04", "05"], 60),
    phase(&[Pause(ONLY, true)], &["06"], 5),
    phase(&[Spec(PLANE, ONLY, "07")], &["07"], 5),
    phase(&[Pause(ONLY, false)], &["08"], 20),
    phase(&[Annotate(PLANE, ONLY, TRIGGER, Some("1"))], &["09"], 5),
    phase(
        &[Annotate(PLANE, ONLY, PAUSED, Some("")), Spec(PLANE, ONLY, "10")],
        &["10"],
        5,
    ),
    phase(&[Annotate(PLANE, ONLY, PAUSED, None)], &["11"], 60),
    phase(&[Delete(CLUSTER, ONLY)], &["12", "13", "14", "15"], 20),
];

const DEADLOCK: &[Phase] = &[
    phase(&[Create(CLUSTER, ONLY, "00"), Create(PLANE, ONLY, "00")], &["00"], 2),
    phase(&[Create(METAL3, ONLY, "01"), Balance("02")], &["01", "02", "03"], 60),
    phase(&[Spec(METAL3, ONLY, "04")], &["04"], 5),
    // No action: the backoff of the provider expires.
    phase(&[], &["05"], 20),
];

/// Cluster, infrastructure and control plane at once.
const ALL_AT_ONCE: &[UserAction] = &[
    Create(CLUSTER, ONLY, "00"),
    Create(METAL3, ONLY, "00"),
    Create(PLANE, ONLY, "00"),
];

const PUBLISHED: &[Phase] = &[
    phase(ALL_AT_ONCE, &["00", "01"], 5),
    phase(&[Balance("02")], &["02", "03", "04"], 300),
    phase(&[Delete(CLUSTER, ONLY)], &["05", "06", "07", "08", "09", "10"], 20),
];

const MISMATCH: &[Phase] = &[
    phase(ALL_AT_ONCE, &["00"], 20),
    phase(
        &[Spec(METAL3, ONLY, "01"), Annotate(PLANE, ONLY, TRIGGER, Some("1"))],
        &["01"],
        5,
    ),
    phase(
        &[Spec(METAL3, ONLY, "02"), Annotate(PLANE, ONLY, TRIGGER, Some("2"))],
        &["02"],
        20,
    ),
];

/// An endpoint set by the user on the control plane.
const TYPED: &[(&str, &str)] = &[("/spec/controlPlaneEndpoint", r#"{"host":"203.0.113.9","port":7443}"#)];

const TYPED_ON_CONTROL_PLANE: &[Phase] = &[
    phase(
        &[
            Create(CLUSTER, ONLY, "00"),
            Create(METAL3, ONLY, "00"),
            CreateWith(PLANE, ONLY, "00", TYPED),
        ],
        &["00"],
        30,
    ),
    phase(&[Spec(METAL3, ONLY, "01")], &["01"], 5),
    phase(&[Annotate(PLANE, ONLY, TRIGGER, Some("1"))], &["02"], 20),
];

const PORT: &[Phase] = &[
    phase(ALL_AT_ONCE, &["00"], 20),
    phase(&[Delete(CLUSTER, ONLY)], &["01", "02"], 20),
];

const NO_REFERENCE: &[Phase] = &[phase(
    &[Create(CLUSTER, ONLY, "00"), Create(PLANE, ONLY, "00")],
    &["00"],
    20,
)];

const UNSUPPORTED: &[Phase] = &[phase(
    &[
        Create(CLUSTER, ONLY, "00"),
        Create(PLANE, ONLY, "00"),
        Create(BYO, ONLY, "00"),
    ],
    &["00"],
    20,
)];

/// Empty host and port.
const NOTHING: &[(&str, &str)] = &[("/spec/controlPlaneEndpoint", r#"{"host":"","port":0}"#)];

const BYOH: &[Phase] = &[
    phase(
        &[
            Create(CLUSTER, MIXED, "00"),
            Create(METAL3, MIXED, "00"),
            ControlPlane(MIXED, "02"),
        ],
        &["00"],
        15,
    ),
    phase(&[Create(BYO, MIXED, "01")], &["01"], 3),
    phase(
        &[Create(CLUSTER, EMPTY, "02"), CreateWith(BYO, EMPTY, "02", NOTHING)],
        &["02", "03"],
        40,
    ),
    phase(&[Spec(BYO, EMPTY, "04")], &["04"], 10),
    phase(
        &[Workload(MIXED, "05"), Create("ByoHost", ONLY, "05")],
        &["05", "06"],
        40,
    ),
    phase(&[Pause(MIXED, true)], &["07"], 5),
    phase(&[Pause(MIXED, false)], &["08"], 3),
    phase(&[Delete(CLUSTER, MIXED)], &["09", "10"], 10),
    phase(&[Create(METAL3, EMPTY, "11")], &["11"], 5),
    phase(&[Delete(CLUSTER, EMPTY)], &["12"], 20),
];

/// All recordings to replay.
pub(super) const SCRIPTS: [Script; 9] = [
    script("kamaji/copied-at-once-paused-deleted", COPIED_AT_ONCE),
    script("kamaji/deadlock", DEADLOCK),
    script("kamaji/published", PUBLISHED),
    script("kamaji/mismatch", MISMATCH),
    script("kamaji/typed-on-control-plane", TYPED_ON_CONTROL_PLANE),
    script("kamaji/port-40000", PORT),
    script("kamaji/no-infrastructure-ref", NO_REFERENCE),
    script("kamaji/unsupported-kind", UNSUPPORTED),
    script("byoh", BYOH),
];

const fn script(folder: &'static str, phases: &'static [Phase]) -> Script {
    Script { folder, phases }
}
