//! Reasons of Metal3MachineTemplates: those of waits, in the log and the metric of waits. The kind has no conditions.

use super::row::{Row, Severity, user};

pub(super) const ROWS: &[Row] = &[
    user(
        Severity::Warning,
        [
            "InvalidHostSelector",
            "The selector of hosts cannot be read",
            "It matches no host, so no machine of the template gets one, and the autoscaler does not scale from zero.",
            "Correct `spec.template.spec.hostSelector`; the message names what is wrong.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "HostUnreadable",
            "A host of the namespace cannot be decoded",
            "It may be one of the template's, so the last status of the template stays as it is.",
            "Correct the BareMetalHost that the message names.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "Metal3ClusterUnusable",
            "Which Metal3Cluster serves the machines is not clear",
            "Its machines of the named MachineDeployment get no host.",
            "Correct the Metal3Cluster or the reference that the message names.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "StatusNotServed",
            "The server does not serve the status of templates",
            "The CustomResourceDefinitions are older ones or those of the Go manager, so the autoscaler does not scale from zero.",
            "Apply `infrastructure-components.yaml` of this release. The status is tried every ten minutes.",
        ],
    ),
];
