//! The states of hosts and machines, and the addresses of pools.

use super::Origin::Own;
use super::Type::{Gauge, Histogram};
use super::{Metric, Row, Type, metric};

const fn host(kind: Type, row: Row) -> Metric {
    metric(kind, "hosts", Own, row)
}

const fn machine(kind: Type, row: Row) -> Metric {
    metric(kind, "capm3", Own, row)
}

const AGES: &str = "how long the objects of a state have been in it, at this scrape: without `rate()`; where the object does \
                    not record the begin, since this process first saw the state";
const OBJECTIVE: &str =
    "how long an object is in the state at most while all is well; absent for a state that may last";

pub(super) const METRICS: &[Metric] = &[
    host(Histogram, ("metal3_host_state_age_seconds", "state", AGES)),
    host(Gauge, ("metal3_host_state_objective_seconds", "state", OBJECTIVE)),
    host(
        Gauge,
        (
            "metal3_host_state_oldest_seconds",
            "state",
            "how long the oldest host of a state has been in it; where the host does not record the begin, since this process \
             first saw the state",
        ),
    ),
    host(
        Gauge,
        (
            "metal3_hosts",
            "state",
            "hosts by `status.provisioning.state`; `none` before the first, `other` for any other text",
        ),
    ),
    host(
        Gauge,
        (
            "metal3_hosts_above_objective",
            "state",
            "hosts that have been in a state for longer than its objective; the time in which they are paused or wait for a slot of Ironic does not count, nor that before the process began",
        ),
    ),
    host(
        Gauge,
        (
            "metal3_hosts_by_error",
            "error_type",
            "hosts by `status.errorType`, if they have one",
        ),
    ),
    host(
        Gauge,
        (
            "metal3_hosts_withheld_by_budget",
            "",
            "hosts that are not deprovisioned before a user confirms it, because the budget was spent",
        ),
    ),
    machine(Histogram, ("metal3_machine_state_age_seconds", "state", AGES)),
    machine(Gauge, ("metal3_machine_state_objective_seconds", "state", OBJECTIVE)),
    machine(
        Gauge,
        (
            "metal3_machine_state_oldest_seconds",
            "state",
            "how long the oldest machine of a state has been in it; where the machine does not record the begin, since this \
             process first saw the state",
        ),
    ),
    machine(
        Gauge,
        (
            "metal3_machines",
            "state",
            "Metal3Machines: `pending` without a host, `provisioning`, `provisioned`, `deleting`",
        ),
    ),
    machine(
        Gauge,
        (
            "metal3_machines_above_objective",
            "state",
            "machines that have been in a state for longer than its objective; the time in which they are paused does not count, nor that before the process began",
        ),
    ),
    machine(
        Gauge,
        (
            "metal3_template_available_hosts",
            "namespace,template",
            "hosts that a machine of the template could take now, for templates of autoscaled MachineDeployments",
        ),
    ),
    metric(
        Gauge,
        "ipam",
        Own,
        (
            "metal3_ipam_pool_addresses",
            "namespace,pool,state",
            "addresses of a pool: `capacity`, `used`, `available`, `reserved`; and `waiting` claims",
        ),
    ),
];
