//! Reasons of the conditions of PreprovisioningImages. Other builders of images write the same ones.

use super::row::{Row, Severity, done, user};

const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "ImageSuccess",
        "The image is made, or being made",
        "`Ready` says whether the host can boot it: `status` has its URL.",
    ),
    warning([
        "ConfigurationError",
        "No image is configured for what the host asks for",
        "`DEPLOY_*` has nothing for the formats or the architecture in the spec: the message says which.",
        "Set the variables that the message names, and restart the controller of hosts. If another builder has such images, delete the PreprovisioningImage: the next one is left to it.",
    ]),
    warning([
        "MissingNetworkData",
        "The Secret with the network data is missing",
        "`spec.networkDataName` comes from `spec.preprovisioningNetworkDataName` of the host, and the namespace has no such Secret.",
        "Create the Secret, or remove the field from the host.",
    ]),
    warning([
        "ObjectUnreadable",
        "The image cannot be decoded",
        "The object has a field of another type than its definition, so nothing is changed.",
        "Correct the field that the message names.",
    ]),
];
