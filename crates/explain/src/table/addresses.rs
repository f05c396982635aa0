//! Reasons of IPPools, IPClaims and IPAddresses, and of Cluster API's claims on an IPPool.

use super::row::{Row, Severity, done, user};

pub(super) const ROWS: &[Row] = &[
    user(
        Severity::Error,
        [
            "AllocationFailed",
            "The claim cannot be served as it is",
            "The requested address is not valid, is in use or outside of the pool, contradicts a pre-allocation, the pool is \
             being deleted, or the API server rejects the address object. The message says which.",
            "Change the annotation `ipAddress` or `spec.preAllocations`. An address that another claim holds may be in use by a running \
             machine: it is free once that machine is deleted. Do not delete the claim alone.",
        ],
    ),
    user(
        Severity::Error,
        [
            "PoolExhausted",
            "No address is free for the claim",
            "Every address of the pool is granted or reserved, or the requested one is in no range.",
            "Add a range to `spec.pools` of the IPPool, or delete claims that are not needed. Waiting claims are then served.",
        ],
    ),
    user(
        Severity::Error,
        [
            "PoolNotFound",
            "The pool does not exist",
            "The claim names an IPPool that is not in its namespace.",
            "Create the pool in the namespace of the claim.",
        ],
    ),
    user(
        Severity::Error,
        [
            "PoolKindUnknown",
            "The kind of the pool is not known",
            "The group is that of this controller, and the kind is not IPPool.",
            "Create a claim that names an IPPool.",
        ],
    ),
    user(
        Severity::Error,
        [
            "NameCollision",
            "An address object of another pool has the name",
            "Two pools of the namespace have the same `spec.namePrefix`, and an address of the same number.",
            "Give each pool of the namespace its own `spec.namePrefix`; it cannot be changed, so create another pool.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "ClusterNotFound",
            "The Cluster does not exist",
            "The pool or claim belongs to a Cluster that is not in the namespace. Nothing is granted; releases continue.",
            "Create the Cluster, or remove `spec.clusterName` of the pool.",
        ],
    ),
    user(
        Severity::Error,
        [
            "NoUsableRange",
            "The pool has no address",
            "No entry of `spec.pools` yields an address.",
            "Give an entry a start and an end, or a subnet.",
        ],
    ),
    user(
        Severity::Warning,
        [
            "NoFreeAddress",
            "The pool has no free address",
            "Every address is granted or reserved. The next claim waits.",
            "Add a range to `spec.pools`, or delete claims that are not needed.",
        ],
    ),
    done("AddressesFree", "Addresses are free", "The next claim is granted."),
    user(
        Severity::Warning,
        [
            "OverlapsPool",
            "Another pool has the same addresses",
            "Both pools may grant one address to two machines.",
            "Separate the ranges, or set pre-allocations.",
        ],
    ),
    done(
        "NoOverlap",
        "No other pool has its addresses",
        "The addresses are granted by this pool alone.",
    ),
    done(
        "TooManyGrants",
        "The status shows only some of the grants",
        "`status.indexes` is limited. The IPAddress objects show all.",
    ),
    user(
        Severity::Warning,
        [
            "ManyOrphans",
            "Address objects have no claim",
            "As after a restored backup. They are kept, so that no address is granted twice.",
            "If their claims will not return, annotate the pool with `ipam.metal3.io/release-orphans=NUMBER`.",
        ],
    ),
    done("AddressGranted", "An address is granted", "The claim has its address."),
    done(
        "AddressReleased",
        "An address is released",
        "Its claim was deleted; the address is free.",
    ),
];
