//! Reasons of the condition of BareMetalSwitches.

use super::row::{Row, Severity, done, user};

const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "Reconciled",
        "The switch is in the Secrets that Ironic reads",
        "Ironic's networking service has its address and its login.",
    ),
    warning([
        "CredentialError",
        "The switch has no usable login",
        "The Secret in `spec.credentials` is missing, lacks a value or the label for hardware, or has another use. The other switches are written.",
        "Do what the message says: `username` and `password`, or `username` and `ssh-privatekey`, in a Secret of the namespace of the switch \
         with the label `environment.metal3.io: baremetal`.",
    ]),
    warning([
        "SwitchInvalid",
        "A value of the switch cannot be in the file",
        "Ironic reads the file of all switches as a whole, so that a value that it cannot read would leave it without any switch.",
        "Change the member of the spec that the message names.",
    ]),
    warning([
        "TooManySwitches",
        "The Secrets for Ironic are full",
        "The namespace has more than 1000 switches, or 900 KiB of sections or keys: a Secret has 1 MiB at most. What is stored of a switch \
         of which something is not known comes first, then the others in the order of their names.",
        "Delete switches, or move some to another namespace with an Ironic of its own.",
    ]),
    warning([
        "SwitchSecretMissing",
        "A Secret for Ironic is missing",
        "This program fills the two Secrets of `IRONIC_SWITCH_CONFIGS_SECRET` and `IRONIC_SWITCH_CREDENTIALS_SECRET`, and creates none.",
        "Create the Secret that the message names, empty, in the namespace of the switch, and mount it in Ironic's networking service.",
    ]),
    warning([
        "SwitchSecretRefused",
        "A Secret for Ironic cannot be changed",
        "The API server refused the change.",
        "Permit this program to patch Secrets of the namespace, and make the Secret neither immutable nor larger than 1 MiB.",
    ]),
    warning([
        "SwitchStatusRefused",
        "The condition of a switch cannot be written",
        "The API server refused it, and is asked again every five minutes. The Secrets for Ironic are written all the same.",
        "Permit this program to patch `baremetalswitches/status`, and see the webhooks and policies of the cluster.",
    ]),
    warning([
        "StateUnknown",
        "The login, a Secret for Ironic or a switch cannot be read",
        "What was written of the switch stays as it is.",
        "See the message: permit this program to read the Secret, or correct the object that cannot be decoded.",
    ]),
];
