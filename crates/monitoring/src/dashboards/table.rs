//! The table of dashboards.

use super::Form::{Areas, Lines, Number};
use super::{Dashboard, Form, Panel};

const fn panel(
    title: &'static str,
    (form, width, unit): (Form, usize, &'static str),
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel {
        title,
        form,
        width,
        unit,
        queries,
    }
}

/// All dashboards.
pub const DASHBOARDS: &[Dashboard] = &[FLEET, HOST, CONTROLLERS];

const FLEET: Dashboard = Dashboard {
    file: "fleet.json",
    title: "Metal3: fleet",
    about: "hosts, machines and addresses by state, what is late, what waits, and Ironic",
    variables: &[],
    panels: &[
        panel(
            "Hosts",
            (Number, 4, "none"),
            &[("", "sum(max by (state) (metal3_hosts))")],
        ),
        panel(
            "Hosts in error",
            (Number, 4, "none"),
            &[("", "sum(max by (error_type) (metal3_hosts_by_error))")],
        ),
        panel(
            "Hosts above their objective",
            (Number, 4, "none"),
            &[("", "sum(max by (state) (metal3_hosts_above_objective))")],
        ),
        panel(
            "Machines",
            (Number, 4, "none"),
            &[("", "sum(max by (state) (metal3_machines))")],
        ),
        panel(
            "Machines above their objective",
            (Number, 4, "none"),
            &[("", "sum(max by (state) (metal3_machines_above_objective))")],
        ),
        panel(
            "Deprovision budget left",
            (Number, 4, "none"),
            &[("", "min(metal3_deprovision_budget_left)")],
        ),
        panel(
            "Hosts by state",
            (Areas, 12, "none"),
            &[("{{state}}", "max by (state) (metal3_hosts)")],
        ),
        panel(
            "Machines by state",
            (Areas, 12, "none"),
            &[("{{state}}", "max by (state) (metal3_machines)")],
        ),
        panel(
            "Hosts by error",
            (Areas, 8, "none"),
            &[("{{error_type}}", "max by (error_type) (metal3_hosts_by_error) > 0")],
        ),
        panel(
            "What objects wait for",
            (Areas, 16, "none"),
            &[(
                "{{controller}}: {{reason}}",
                "max by (controller, reason) (metal3_controller_waiting_keys) > 0",
            )],
        ),
        panel(
            "Oldest host of a state",
            (Lines, 12, "s"),
            &[(
                "{{state}}",
                "max by (state) (metal3_host_state_oldest_seconds) and on (state) metal3_host_state_objective_seconds",
            )],
        ),
        panel(
            "Oldest machine of a state",
            (Lines, 12, "s"),
            &[(
                "{{state}}",
                "max by (state) (metal3_machine_state_oldest_seconds) and on (state) metal3_machine_state_objective_seconds",
            )],
        ),
        panel(
            "Nine of ten hosts are in their state for",
            (Lines, 12, "s"),
            &[(
                "{{state}}",
                "histogram_quantile(0.9, max by (state, le) (metal3_host_state_age_seconds_bucket))",
            )],
        ),
        panel(
            "Addresses left",
            (Lines, 12, "none"),
            &[(
                "{{namespace}}/{{pool}}",
                "max by (namespace, pool) (metal3_ipam_pool_addresses{state=\"available\"})",
            )],
        ),
        panel(
            "Feed lag of Ironic",
            (Lines, 8, "s"),
            &[("lag", "max(metal3_ironic_feed_lag_seconds)")],
        ),
        panel(
            "Requests to Ironic",
            (Areas, 8, "reqps"),
            &[(
                "{{result}}",
                "sum by (result) (rate(metal3_ironic_requests_total[$__rate_interval]))",
            )],
        ),
        panel(
            "Nine of ten requests to Ironic take",
            (Lines, 8, "s"),
            &[(
                "{{method}}",
                "histogram_quantile(0.9, sum by (method, le) (rate(metal3_ironic_request_seconds_bucket[$__rate_interval])))",
            )],
        ),
    ],
};

const HOST: Dashboard = Dashboard {
    file: "host.json",
    title: "Metal3: one host",
    about: "operations, power changes and delays of one host",
    variables: &[
        ("namespace", "metal3_reconcile_total"),
        ("host", "metal3_reconcile_total{namespace=\"$namespace\"}"),
    ],
    panels: &[
        panel(
            "Mean duration of operations",
            (Lines, 12, "s"),
            &[
                (
                    "register",
                    "sum(metal3_operation_register_duration_seconds_sum{namespace=\"$namespace\",host=\"$host\"}) / sum(metal3_operation_register_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
                (
                    "inspect",
                    "sum(metal3_operation_inspect_duration_seconds_sum{namespace=\"$namespace\",host=\"$host\"}) / sum(metal3_operation_inspect_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
                (
                    "provision",
                    "sum(metal3_operation_provision_duration_seconds_sum{namespace=\"$namespace\",host=\"$host\"}) / sum(metal3_operation_provision_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
                (
                    "deprovision",
                    "sum(metal3_operation_deprovision_duration_seconds_sum{namespace=\"$namespace\",host=\"$host\"}) / sum(metal3_operation_deprovision_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
            ],
        ),
        panel(
            "Operations",
            (Lines, 12, "none"),
            &[
                (
                    "register",
                    "sum(metal3_operation_register_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
                (
                    "inspect",
                    "sum(metal3_operation_inspect_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
                (
                    "provision",
                    "sum(metal3_operation_provision_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
                (
                    "deprovision",
                    "sum(metal3_operation_deprovision_duration_seconds_count{namespace=\"$namespace\",host=\"$host\"})",
                ),
            ],
        ),
        panel(
            "Power changes in an hour",
            (Lines, 8, "none"),
            &[(
                "{{on_off}}",
                "sum by (on_off) (increase(metal3_operation_power_change_total{namespace=\"$namespace\",host=\"$host\"}[1h]))",
            )],
        ),
        panel(
            "Delays for a free slot in an hour",
            (Lines, 8, "none"),
            &[
                (
                    "provision",
                    "sum(increase(metal3_delayed__provisioning_total{namespace=\"$namespace\",host=\"$host\"}[1h]))",
                ),
                (
                    "deprovision",
                    "sum(increase(metal3_delayed__deprovisioning_total{namespace=\"$namespace\",host=\"$host\"}[1h]))",
                ),
            ],
        ),
        panel(
            "Reconciles in an hour",
            (Lines, 8, "none"),
            &[(
                "reconciles",
                "sum(increase(metal3_reconcile_total{namespace=\"$namespace\",host=\"$host\"}[1h]))",
            )],
        ),
    ],
};

const CONTROLLERS: Dashboard = Dashboard {
    file: "controllers.json",
    title: "Metal3: controllers",
    about: "leaders, queues, reconciles, caches, webhooks and processes",
    variables: &[],
    panels: &[
        panel(
            "Processes",
            (Number, 6, "none"),
            &[("{{version}}", "count by (version) (metal3_build_info)")],
        ),
        panel(
            "Leaders",
            (Number, 6, "none"),
            &[(
                "{{name}}",
                "sum by (name) (leader_election_master_status and on (job, instance) metal3_build_info)",
            )],
        ),
        panel(
            "Days left of the certificate",
            (Number, 6, "none"),
            &[("", "min(metal3_certificate_days_left)")],
        ),
        panel(
            "Ironic",
            (Number, 6, "none"),
            &[("{{microversion}}", "count by (microversion) (metal3_ironic_info)")],
        ),
        panel(
            "Objects that are ready",
            (Areas, 12, "none"),
            &[(
                "{{controller}}",
                "sum by (controller) (workqueue_depth and on (job, instance) metal3_build_info)",
            )],
        ),
        panel(
            "Oldest ready object",
            (Lines, 12, "s"),
            &[(
                "{{controller}}",
                "max by (controller) (metal3_workqueue_oldest_ready_seconds)",
            )],
        ),
        panel(
            "Objects that fail",
            (Areas, 12, "none"),
            &[("{{controller}}", "max by (controller) (metal3_workqueue_failing_keys)")],
        ),
        panel(
            "Errors of reconciles",
            (Areas, 12, "ops"),
            &[(
                "{{controller}}: {{category}}",
                "sum by (controller, category) (rate(metal3_controller_faults_total[$__rate_interval]))",
            )],
        ),
        panel(
            "Reconciles",
            (Areas, 12, "ops"),
            &[(
                "{{controller}}",
                "sum by (controller) (rate(controller_runtime_reconcile_total[$__rate_interval]) and on (job, instance) metal3_build_info)",
            )],
        ),
        panel(
            "Nine of ten reconciles take",
            (Lines, 12, "s"),
            &[(
                "{{controller}}",
                "histogram_quantile(0.9, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[$__rate_interval]) and on (job, instance) metal3_build_info))",
            )],
        ),
        panel(
            "Age of caches",
            (Lines, 12, "s"),
            &[("{{kind}}", "max by (kind) (metal3_cache_age_seconds)")],
        ),
        panel(
            "Failed watches in an hour",
            (Lines, 12, "none"),
            &[(
                "{{kind}}",
                "sum by (kind) (increase(metal3_watch_failures_total[1h])) > 0",
            )],
        ),
        panel(
            "Requests to API servers",
            (Areas, 12, "reqps"),
            &[(
                "{{method}} {{code}}",
                "sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]) and on (job, instance) metal3_build_info)",
            )],
        ),
        panel(
            "Webhook requests",
            (Areas, 12, "reqps"),
            &[(
                "{{webhook}} {{code}}",
                "sum by (webhook, code) (rate(controller_runtime_webhook_requests_total[$__rate_interval]) and on (job, instance) metal3_build_info)",
            )],
        ),
        panel(
            "Memory",
            (Lines, 8, "bytes"),
            &[(
                "{{instance}}",
                "process_resident_memory_bytes and on (job, instance) metal3_build_info",
            )],
        ),
        panel(
            "Processors",
            (Lines, 8, "none"),
            &[(
                "{{instance}}",
                "rate(process_cpu_seconds_total[$__rate_interval]) and on (job, instance) metal3_build_info",
            )],
        ),
        panel(
            "Open files",
            (Lines, 8, "none"),
            &[(
                "{{instance}}",
                "process_open_fds and on (job, instance) metal3_build_info",
            )],
        ),
    ],
};
