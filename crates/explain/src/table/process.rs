//! Reasons of Events about the program itself.

use super::row::{Row, Severity, done, user};

pub(super) const ROWS: &[Row] = &[
    user(
        Severity::Warning,
        [
            "ControllersIdle",
            "The controllers do nothing",
            "A Go manager of the same group has replicas, or whether it has is not known. Two implementations of one group \
             never write at the same time.",
            "Scale the Deployment that the Event is about to 0 (`docs/migration.md`), or let this program list it.",
        ],
    ),
    done(
        "ControllersResumed",
        "The controllers work again",
        "No Go manager of the group has replicas any more.",
    ),
];
