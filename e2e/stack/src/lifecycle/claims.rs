//! The claims of the suite.

use super::env::{Part, TestEnv};
use super::report::Report;
use super::{
    audit, cluster, cluster_move, foreign, install, kills, labels, plugin, remediation, reuse, rolls, topology, upgrade,
};
use crate::claim::{self, Proof};

/// A claim, its part, and its proof.
struct Claim {
    name: &'static str,
    part: Option<Part>,
    proof: fn(&TestEnv<'_>) -> Proof,
}

/// A claim of each run.
const fn always(name: &'static str, proof: fn(&TestEnv<'_>) -> Proof) -> Claim {
    let part = None;
    Claim { name, part, proof }
}

const fn of(part: Part, name: &'static str, proof: fn(&TestEnv<'_>) -> Proof) -> Claim {
    let part = Some(part);
    Claim { name, part, proof }
}

/// In this order: each claim starts with the state that the previous one left; those of a part restore the state.
const CLAIMS: &[Claim] = &[
    always("the_host_manager_runs_from_the_release", install::hosts),
    always(
        "clusterctl_init_installs_machines_and_addresses_next_to_cluster_api",
        install::providers,
    ),
    always(
        "the_real_ironic_inspects_every_machine_and_its_host_is_available",
        cluster::available,
    ),
    // Before an upgrade: moving to a management cluster with an older release is not supported.
    of(
        Part::Foreign,
        "machines_join_a_cluster_of_another_infrastructure_that_moves_there_and_back_and_is_deleted",
        foreign::life_cycle,
    ),
    always(
        "a_generated_cluster_becomes_available_and_its_machines_are_nodes",
        cluster::runs,
    ),
    always(
        "disks_and_config_drives_hold_exactly_the_ordered_bytes",
        cluster::written,
    ),
    always("the_plugin_shows_the_cluster_to_a_viewer_and_no_secret", plugin::shows),
    always(
        "workers_are_scaled_up_and_down_while_the_leader_is_killed",
        cluster::scaled,
    ),
    of(
        Part::Rolls,
        "workers_are_replaced_one_by_one_with_one_additional_machine",
        rolls::with_one_more,
    ),
    of(
        Part::Rolls,
        "workers_are_replaced_one_by_one_with_one_machine_less",
        rolls::with_one_less,
    ),
    of(
        Part::Reuse,
        "workers_with_node_reuse_get_their_hosts_and_data_back_while_leaders_are_killed",
        reuse::rolled,
    ),
    of(
        Part::Labels,
        "selected_labels_of_a_host_are_on_its_node_until_they_are_removed",
        labels::copied,
    ),
    of(
        Part::Remediation,
        "a_worker_whose_node_stops_answering_is_power_cycled_and_its_node_is_ready_again",
        remediation::repaired,
    ),
    of(
        Part::Remediation,
        "a_worker_whose_node_stays_silent_is_replaced_on_another_host",
        remediation::replaced,
    ),
    of(
        Part::Move,
        "a_cluster_moves_to_another_management_cluster_and_its_machines_keep_running",
        cluster_move::there,
    ),
    of(
        Part::Move,
        "it_moves_back_and_its_machines_keep_running",
        cluster_move::back,
    ),
    of(
        Part::Upgrade,
        "the_next_version_takes_over_without_a_change_in_ironic",
        upgrade::applied,
    ),
    of(
        Part::Upgrade,
        "deleting_the_providers_changes_no_host_and_reinstalling_them_resumes",
        upgrade::deleted_and_reinstalled,
    ),
    always(
        "deleting_the_cluster_frees_each_host_with_blank_disks",
        cluster::deleted,
    ),
    of(
        Part::Topology,
        "the_class_of_the_release_spreads_a_control_plane_over_three_zones_with_a_pool_each",
        topology::spread,
    ),
    of(
        Part::Topology,
        "a_lost_zone_leaves_the_others_ready_and_its_new_machine_does_what_the_policy_says",
        topology::lost,
    ),
    of(
        Part::Topology,
        "dry_runs_of_another_class_version_and_variables_write_nothing_of_ours",
        topology::dry_run,
    ),
    of(
        Part::Topology,
        "a_rebase_to_an_equal_class_and_back_replaces_no_machine",
        topology::rebased,
    ),
    of(
        Part::Topology,
        "changed_variables_are_rolled_out_and_reach_the_disks",
        topology::changed,
    ),
    of(
        Part::Topology,
        "the_topology_controller_upgrades_kubernetes_and_old_hosts_are_cleaned",
        topology::upgraded,
    ),
    of(
        Part::Topology,
        "an_upgrade_over_two_minors_goes_through_the_one_between",
        topology::chained,
    ),
    of(
        Part::Topology,
        "a_group_of_workers_grows_from_zero_by_the_capacity_of_its_template",
        topology::grown,
    ),
    of(
        Part::Topology,
        "ignition_workers_hold_exactly_the_ordered_bytes_and_join",
        topology::written,
    ),
    of(
        Part::Topology,
        "each_flavour_of_the_release_is_admitted_with_its_example_variables",
        topology::admitted,
    ),
    of(
        Part::Topology,
        "a_pool_gives_a_cluster_of_the_class_its_address_and_the_manifest_of_kube_vip_has_it",
        topology::assigned,
    ),
    of(
        Part::Topology,
        "deleting_the_cluster_of_the_class_frees_each_host_and_leaves_the_class_alone",
        topology::deleted,
    ),
    of(
        Part::Kills,
        "a_life_cycle_with_leaders_killed_at_five_points_ends_like_an_undisturbed_one",
        kills::survived,
    ),
    always(
        "each_permission_is_used_or_explained_and_no_request_was_forbidden",
        audit::grants_are_used,
    ),
    always(
        "no_manager_asks_for_what_does_not_exist",
        audit::nothing_is_asked_for_that_does_not_exist,
    ),
    always(
        "no_write_conflicts_with_one_of_this_program",
        audit::no_write_conflicts_with_one_of_this_program,
    ),
];

/// Proves them; returns whether all hold.
pub(super) fn prove(env: &TestEnv<'_>, report: &mut Report) -> bool {
    let wanted = |claim: &&Claim| claim.part.is_none_or(|part| env.parts.contains(&part));
    let claims: Vec<&Claim> = CLAIMS.iter().filter(wanted).collect();
    for (held, claim) in claims.iter().enumerate() {
        let proof = (claim.proof)(env);
        let figures = proof.as_ref().map_or("FAILS", String::as_str);
        report.step(env, &claim.name.replace('_', " "), figures);
        if !claim::report(claim.name, proof) {
            println!("{held} of {} claims hold", claims.len());
            return false;
        }
    }
    println!("{} claims about the life cycle hold", claims.len());
    true
}
