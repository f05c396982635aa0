//! Metrics of host controllers.

use super::Origin::{GoManagers, Own};
use super::Type::{Counter, Gauge, Histogram, Info};
use super::{Metric, Row, Type, metric};

const fn upstream(kind: Type, row: Row) -> Metric {
    metric(kind, "hosts", GoManagers, row)
}

const fn own(kind: Type, row: Row) -> Metric {
    metric(kind, "hosts", Own, row)
}

const OF_HOST: &str = "host,namespace";

pub(super) const METRICS: &[Metric] = &[
    upstream(
        Counter,
        (
            "metal3_credentials_invalid",
            "",
            "times the address or the Secret of a BMC was not usable",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_credentials_missing",
            "",
            "times the Secret of a BMC did not exist",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_credentials_no_management_access",
            "",
            "times Ironic could not verify the access to a BMC",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_credentials_unhandled_error",
            "",
            "times the Secret of a BMC could not be read",
        ),
    ),
    upstream(
        Counter,
        ("metal3_credentials_updated", "", "times the Secret of a BMC changed"),
    ),
    upstream(
        Counter,
        (
            "metal3_delayed__deprovisioning",
            OF_HOST,
            "deprovisionings delayed because no busy-host slot is free",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_delayed__provisioning",
            OF_HOST,
            "hosts delayed because no busy-host slot is free",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_delete_delayed_for_detached",
            "",
            "deletions delayed because the host is detached",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_delete_without_deprovisioning",
            "",
            "deletions without deprovisioning, after failures",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_delete_without_powering_off",
            "",
            "deletions without powering off, after failures",
        ),
    ),
    own(
        Gauge,
        (
            "metal3_deprovision_budget_left",
            "",
            "deprovisionings that are left in the namespace with the least",
        ),
    ),
    own(
        Gauge,
        (
            "metal3_deprovision_budget_limit",
            "",
            "deprovisionings per namespace and hour, by `--deprovision-budget`",
        ),
    ),
    own(
        Gauge,
        (
            "metal3_deprovision_budget_spent_namespaces",
            "",
            "namespaces of which none is left",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_host_config_data_error",
            "host_data_type",
            "times a Secret for the config drive of a host had no value",
        ),
    ),
    upstream(Counter, ("metal3_host_error", "error_type", "errors of hosts by type")),
    upstream(
        Counter,
        (
            "metal3_host_registration_required",
            "",
            "hosts that have to be registered",
        ),
    ),
    upstream(
        Counter,
        ("metal3_host_unmanaged", "", "reconciles of hosts without a BMC"),
    ),
    own(
        Info,
        (
            "metal3_ironic",
            "microversion",
            "API version in use with Ironic; with several Ironics all series of Ironic have the label `ironic` too",
        ),
    ),
    own(
        Gauge,
        (
            "metal3_ironic_feed_lag_seconds",
            "",
            "how far the cached nodes may be behind Ironic; only of the process that leads",
        ),
    ),
    own(
        Histogram,
        (
            "metal3_ironic_request_seconds",
            "method",
            "duration of requests to Ironic",
        ),
    ),
    own(
        Counter,
        (
            "metal3_ironic_requests",
            "method,result",
            "requests to Ironic; `result` is `success`, `conflict`, `refused`, `failed`, `unreachable`, `timeout` or `unusable`",
        ),
    ),
    upstream(
        Histogram,
        (
            "metal3_operation_deprovision_duration_seconds",
            OF_HOST,
            "duration of deprovisionings",
        ),
    ),
    upstream(
        Histogram,
        (
            "metal3_operation_inspect_duration_seconds",
            OF_HOST,
            "duration of inspections",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_operation_power_change",
            "host,namespace,on_off",
            "requested power changes",
        ),
    ),
    upstream(
        Histogram,
        (
            "metal3_operation_provision_duration_seconds",
            OF_HOST,
            "duration of deployments",
        ),
    ),
    upstream(
        Histogram,
        (
            "metal3_operation_register_duration_seconds",
            OF_HOST,
            "duration of registrations",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_provisioner_not_ready",
            "",
            "reconciles of hosts to which Ironic did not respond",
        ),
    ),
    upstream(
        Counter,
        (
            "metal3_provisioning_state_change",
            "new_state,prev_state",
            "state changes of hosts",
        ),
    ),
    upstream(Counter, ("metal3_reconcile", OF_HOST, "reconciles of hosts")),
    upstream(
        Counter,
        ("metal3_reconcile_error", "", "reconciles of hosts that failed"),
    ),
    upstream(
        Counter,
        (
            "metal3_waiting_for_preprov_image",
            "",
            "times a host began to wait for the image of its agent",
        ),
    ),
];
