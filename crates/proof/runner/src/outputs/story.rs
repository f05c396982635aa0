//! What happens in the sandbox, and which commands are shown.

/// Something that happens.
pub(super) enum Step {
    /// Time passes.
    Minutes(u32),
    /// These commands are shown below a title.
    Show(&'static str, &'static [&'static str]),
    /// The BMC of a host accepts the login again.
    Repair(u32),
}

/// Hosts of the world, of which the last one has a BMC that rejects the login.
pub(super) const HOSTS: u32 = 3;

/// A Cluster of a control plane and two workers gets three hosts.
pub(super) const STORY: [Step; 8] = [
    Step::Minutes(4),
    Step::Show("Hosts are inspected", &["why cluster/edge", "hosts", "timeline host-1"]),
    Step::Minutes(86),
    Step::Show(
        "A BMC rejects the login",
        &[
            "why cluster/edge",
            "tree edge",
            "hosts",
            "hosts --error",
            "pools edge",
            "consumers",
            "timeline host-1",
            "top",
            "support-bundle",
        ],
    ),
    Step::Repair(HOSTS),
    Step::Minutes(90),
    Step::Show(
        "The login is accepted",
        &["why cluster/edge", "tree edge", "hosts", "timeline host-3"],
    ),
    Step::Minutes(60),
];

/// What is run in each minute too.
pub(super) const EACH_MINUTE: [&str; 7] = [
    "why cluster/edge",
    "tree edge",
    "hosts",
    "pools",
    "consumers",
    "timeline host-3",
    "top",
];
