//! The table of alerts.

use super::Alert;
use super::Severity::{Critical, Warning};

/// All alerts.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "Metal3ProgramAbsent",
        query: "absent(metal3_build_info)",
        minutes: 10,
        severity: Critical,
        summary: "No process of the bare metal provider is scraped.",
        meaning: "Prometheus has no metrics of any process: none runs, or its metrics cannot be read.",
        cure: "Look at the Pods of the Deployment, then at the targets of Prometheus.",
        see: &[],
    },
    Alert {
        name: "Metal3ControllersAbsent",
        query: "(max by (namespace, controllers) (count_over_time(metal3_build_info[1h])) \
                unless max by (namespace, controllers) (metal3_build_info)) and on () metal3_build_info",
        minutes: 10,
        severity: Critical,
        summary: "No process with --controllers={{ $labels.controllers }} is scraped any more.",
        meaning: "Of several Deployments one is gone: Prometheus had metrics of its processes within the last hour, and has those \
                  of others only.",
        cure: "Look at the Pods of that Deployment: the alert ends after an hour, even if they stay absent. After a change of \
               `--controllers` or of the namespace it needs nothing.",
        see: &[],
    },
    Alert {
        name: "Metal3NoLeader",
        query: "max by (namespace, name) (leader_election_master_status and on (job, instance) metal3_build_info) < 1",
        minutes: 5,
        severity: Critical,
        summary: "No process holds the lease {{ $labels.namespace }}/{{ $labels.name }}.",
        meaning: "Processes run and none leads, so nothing is reconciled.",
        cure: "Read /readyz and the log of a Pod: a Go manager of the same group may run, or the API server refuses the lease.",
        see: &["process.md#controllersidle"],
    },
    Alert {
        name: "Metal3HostsInError",
        query: "max by (error_type) (metal3_hosts_by_error) > 0",
        minutes: 10,
        severity: Warning,
        summary: "{{ $value }} hosts have a {{ $labels.error_type }}.",
        meaning: "An operation on a machine failed and is retried with growing pauses: its BMC, its login, its boot, its disk or \
                  its image.",
        cure: "List the hosts with `kubectl metal3 hosts -A --error`; `kubectl metal3 why bmh/NAME -n NAMESPACE` says what failed and what to do.",
        see: &[
            "hosts.md#registrationerror",
            "hosts.md#inspectionerror",
            "hosts.md#preparationerror",
            "hosts.md#provisioningerror",
            "hosts.md#powermanagementerror",
        ],
    },
    Alert {
        name: "Metal3HostsAboveObjective",
        query: "max by (state) (metal3_hosts_above_objective) > 0",
        minutes: 5,
        severity: Warning,
        summary: "{{ $value }} hosts have been {{ $labels.state }} for too long.",
        meaning: "A host stays in a state for longer than its objective (`--state-objectives`).",
        cure: "`kubectl metal3 top -A` lists those that wait longest; run `kubectl metal3 why bmh/NAME -n NAMESPACE` for them.",
        see: &[
            "hosts.md#notprogressing",
            "hosts.md#waitingforironic",
            "hosts.md#backingoff",
        ],
    },
    Alert {
        name: "Metal3MachinesAboveObjective",
        query: "max by (state) (metal3_machines_above_objective) > 0",
        minutes: 5,
        severity: Warning,
        summary: "{{ $value }} machines have been {{ $labels.state }} for too long.",
        meaning: "A Metal3Machine stays in a state for longer than its objective (`--state-objectives`).",
        cure: "Run `kubectl metal3 why metal3machine/NAME` for machines of the state: it follows the wait to its cause.",
        see: &["machines.md#associatebaremetalhostfailed", "machines.md#waitingfornode"],
    },
    Alert {
        name: "Metal3NoHostForMachine",
        // A roll in place waits for the host of the old machine: hosts that are on their way in time are for the first machines.
        query: "max(metal3_controller_waiting_keys{controller=\"metal3machine\",reason=\"AssociateBareMetalHostFailed\"}) \
                - (sum(max by (state) (metal3_hosts{state=~\"registering|inspecting|preparing|deprovisioning\"})) \
                - sum(max by (state) (metal3_hosts_above_objective{state=~\"registering|inspecting|preparing|deprovisioning\"})) \
                or vector(0)) > 0",
        minutes: 15,
        severity: Warning,
        summary: "{{ $value }} machines find no host, and none is on its way for them.",
        meaning: "No available host matches the host selector of a machine, and fewer hosts than such machines are registered, \
                  inspected, prepared or deprovisioned in time.",
        cure: "Add hosts, mend those in error, or change the selector: the condition of the machine counts the hosts by what \
               excludes them.",
        see: &["machines.md#associatebaremetalhostfailed"],
    },
    Alert {
        name: "Metal3PoolHasNoAddress",
        query: "max by (namespace, pool) (metal3_ipam_pool_addresses{state=\"waiting\"}) > 0 \
                and max by (namespace, pool) (metal3_ipam_pool_addresses{state=\"available\"}) == 0",
        minutes: 5,
        severity: Warning,
        summary: "{{ $value }} claims wait for an address of the pool {{ $labels.namespace }}/{{ $labels.pool }}.",
        meaning: "All addresses of a pool are in use or reserved, and machines wait for one.",
        cure: "Add a range to the pool, or release addresses.",
        see: &["addresses.md#poolexhausted", "addresses.md#nofreeaddress"],
    },
    Alert {
        name: "Metal3ClaimsWithoutAddress",
        query: "max by (namespace, pool) (metal3_ipam_pool_addresses{state=\"waiting\"}) > 0 \
                and max by (namespace, pool) (metal3_ipam_pool_addresses{state=\"available\"}) > 0",
        minutes: 15,
        severity: Warning,
        summary: "{{ $value }} claims have no address, and the pool {{ $labels.namespace }}/{{ $labels.pool }} has free ones.",
        meaning: "A claim asks for what the pool cannot give, its Cluster does not exist, or the API server rejects its address.",
        cure: "List the claims with `kubectl metal3 pools POOL -n NAMESPACE`, and run `kubectl metal3 why ipclaim/NAME -n NAMESPACE`.",
        see: &["addresses.md#allocationfailed", "addresses.md#clusternotfound"],
    },
    Alert {
        name: "Metal3IronicUnreachable",
        query: "max(metal3_ironic_feed_lag_seconds) > 300",
        minutes: 1,
        severity: Critical,
        summary: "No poll of Ironic succeeded for {{ $value | humanizeDuration }}.",
        meaning: "Ironic does not answer, so that no host progresses. Machines that run keep running.",
        cure: "Restore Ironic, or correct its address, login and certificates: the log of the leader has the error.",
        see: &["hosts.md#ironicunreachable"],
    },
    Alert {
        name: "Metal3IronicErrors",
        query: "sum(rate(metal3_ironic_requests_total{result=~\"failed|unreachable|timeout|unusable\"}[10m])) \
                / sum(rate(metal3_ironic_requests_total[10m])) > 0.1",
        minutes: 10,
        severity: Warning,
        summary: "{{ $value | humanizePercentage }} of the requests to Ironic fail.",
        meaning: "Ironic or what is before it fails for a part of the requests; they are repeated.",
        cure: "Look at the log of Ironic, and at the labels `method` and `result` of `metal3_ironic_requests_total`.",
        see: &["hosts.md#requestrefused", "hosts.md#ironicunreachable"],
    },
    Alert {
        name: "Metal3IronicSlow",
        query: "histogram_quantile(0.9, sum by (le) (rate(metal3_ironic_request_seconds_bucket[15m]))) > 10",
        minutes: 15,
        severity: Warning,
        summary: "One in ten requests to Ironic takes more than {{ $value | humanizeDuration }}.",
        meaning: "Ironic is overloaded, or its database is.",
        cure: "Give Ironic more processors or a faster database, and poll the power of BMCs less often.",
        see: &[],
    },
    Alert {
        name: "Metal3DeprovisionBudgetSpent",
        query: "max(metal3_hosts_withheld_by_budget) > 0",
        minutes: 1,
        severity: Critical,
        summary: "{{ $value }} hosts are not deprovisioned before a user confirms it.",
        meaning: "As many provisioned hosts as `--deprovision-budget` allows were deprovisioned within an hour; the others run until \
                  each is confirmed. A mistake may be erasing a fleet.",
        cure: "Find out who deletes the machines. Confirm what is meant with the annotation \
               `baremetalhost.metal3.io/confirm-deprovision`, and revert the rest.",
        see: &["hosts.md#deprovisionbudgetspent"],
    },
    Alert {
        name: "Metal3CacheStale",
        // Twice the longest silence of a server, and before a liveness probe restarts the process, after 480 s.
        query: "max by (kind) (metal3_cache_age_seconds) > 160",
        minutes: 2,
        severity: Critical,
        summary: "The cache of {{ $labels.kind }} has received nothing for {{ $value | humanizeDuration }}.",
        meaning: "The API server does not serve the watch of a kind, so that decisions wait or use old objects.",
        cure: "Look at the API server, and at the permissions and CRDs of the kind; the log names the error.",
        see: &[],
    },
    Alert {
        name: "Metal3QueueStuck",
        query: "max by (controller) (metal3_workqueue_oldest_ready_seconds) > 600",
        minutes: 5,
        severity: Warning,
        summary: "An object of {{ $labels.controller }} has waited {{ $value | humanizeDuration }} for a worker.",
        meaning: "All workers of a controller are busy for long: with too many objects, or with slow answers.",
        cure: "Look at the duration of reconciles and of requests; raise the `--*-concurrency` of the controller.",
        see: &[],
    },
    Alert {
        name: "Metal3ReconcilesFail",
        query: "max by (controller) (metal3_workqueue_failing_keys) > 0",
        minutes: 60,
        severity: Warning,
        summary: "Reconciles of {{ $labels.controller }} have failed for an hour; {{ $value }} objects fail now.",
        meaning: "At each moment of an hour an object failed: the same again and again, or one after the other.",
        cure: "The log has the error of each object from its fifth failure on; `metal3_controller_faults_total` counts categories.",
        see: &[],
    },
    Alert {
        name: "Metal3Panics",
        query: "sum by (controller) (increase(controller_runtime_reconcile_panics_total[1h]) \
                and on (job, instance) metal3_build_info) > 0",
        minutes: 0,
        severity: Critical,
        summary: "Reconciles of {{ $labels.controller }} panicked.",
        meaning: "The program has a defect: a reconcile ended by a panic, and is repeated.",
        cure: "Report it with the log of the panic, and with `kubectl metal3 support-bundle`.",
        see: &[],
    },
    Alert {
        name: "Metal3WebhooksFail",
        query: "sum by (webhook) (rate(controller_runtime_webhook_requests_total{code=~\"5..\"}[10m]) \
                and on (job, instance) metal3_build_info) > 0",
        minutes: 10,
        severity: Warning,
        summary: "The webhook {{ $labels.webhook }} fails.",
        meaning: "Requests of users are rejected because their webhook fails.",
        cure: "Look at the log of the Pods, and at the certificate and CA of the webhook configuration.",
        see: &[],
    },
    Alert {
        name: "Metal3CertificateExpires",
        query: "min(metal3_certificate_days_left) < 7",
        minutes: 60,
        severity: Critical,
        summary: "The certificate of the webhooks expires in {{ $value | humanize }} days.",
        meaning: "cert-manager or the program has not renewed it; after its end the API server rejects every write of the kinds.",
        cure: "Look at the Certificate and the Secret, and at `certwatcher_read_certificate_errors_total`.",
        see: &[],
    },
];
