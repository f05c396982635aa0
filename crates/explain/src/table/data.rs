//! Reasons of Metal3DataTemplates, Metal3DataClaims and Metal3Data.

use super::row::{Row, Severity, done, passes, user};

pub(super) const ROWS: &[Row] = &[
    passes(
        "ObjectNotListed",
        "A kind is being listed",
        "The first list of a required kind is not complete.",
        "Wait. If it lasts, see the log and `/readyz` of this program: a kind may not be installed.",
    ),
    user(
        Severity::Warning,
        [
            "ClusterNotFound",
            "The Cluster does not exist",
            "The object belongs to a Cluster that is not in the namespace; a pause cannot be ruled out.",
            "Create the Cluster, or delete the object.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "NotNamedByClaim",
            "No claim names the Metal3Data",
            "The claim has another Metal3Data, or is being deleted. The object is not used.",
            "Delete the Metal3Data if nothing uses it.",
        ],
    ),
    passes(
        "WaitingForInput",
        "An input of the data is missing",
        "The host, the Machine, the template or an address is not there yet. `status.errorMessage` says so where a user \
         must act.",
        "See the claims on pools that the Metal3Data owns: `kubectl metal3 why metal3data/NAME` does.",
    ),
    user(
        Severity::Error,
        [
            "RenderingFailed",
            "The data cannot be rendered",
            "The template asks for something that this machine does not have. `status.errorMessage` names the field.",
            "Correct the host or the Machine that the message names. A template cannot be changed: create another one and \
             roll the machines.",
        ],
    ),
    done(
        "Rendered",
        "The data are rendered",
        "The Secrets with metadata and network data exist.",
    ),
    passes(
        "ClaimLives",
        "The addresses are kept until the claim is deleted",
        "The Metal3Data is being deleted while its claim exists: the machine may still use the addresses.",
        "Delete the Machine if it is not needed: its host is deprovisioned, and its claim follows.",
    ),
    done(
        "IndexesTruncated",
        "The status shows only some of the indexes",
        "More indexes are in use than the status of a template has room for. All are assigned all the same.",
    ),
];
