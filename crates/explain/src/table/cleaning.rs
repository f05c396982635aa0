//! Reasons of the condition `CleaningPlan` of hosts.

use super::row::{Row, done, failure};

pub(super) const ALL_ERASED: Row = done(
    "AllDisksErased",
    "The next cleaning erases all disks",
    "`spec.cleaning` keeps none, or the volumes of `spec.raid` are made or removed. The message names the disks that are known.",
);

pub(super) const KEPT: Row = done(
    "DisksKept",
    "The next cleaning keeps some disks",
    "`spec.cleaning.keepDisks` names them. The message has what is erased and what is kept.",
);

pub(super) const NONE_ERASED: Row = done(
    "NoDiskErased",
    "Ironic erases no disk",
    "`spec.automatedCleaningMode` is `disabled`, or `spec.cleaning.when` is `first` and that is past.",
);

pub(super) const NOT_PROTECTED: Row = failure([
    "DisksNotProtected",
    "A disk that is to be kept could be lost",
    "`spec.cleaning.keepDisks` names a disk that is not known, cannot be distinguished from others or was promised to be erased, or the image could go to it: nothing is erased and no image is written. Or what Ironic does now began before the disk was named.",
    "Do what the message says, or remove the disk from `spec.cleaning.keepDisks` if it may be erased.",
]);
