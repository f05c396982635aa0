//! The promises of the mission.

use super::report::Report;
use super::{Claim, Part, Scene, audit, foreign, install, kills, life, moved, rolls, upgrade};

/// One that the mission is not without.
const fn always(name: &'static str, proof: fn(&Scene<'_>) -> crate::products::Proof) -> Claim {
    let part = None;
    Claim { name, part, proof }
}

const fn of(part: Part, name: &'static str, proof: fn(&Scene<'_>) -> crate::products::Proof) -> Claim {
    let part = Some(part);
    Claim { name, part, proof }
}

/// In this order: each finds the world as the one before has left it, and those of a part leave it as they have found it.
const CLAIMS: &[Claim] = &[
    always("the_manager_of_hosts_runs_from_the_release", install::hosts),
    always(
        "clusterctl_init_installs_machines_and_addresses_beside_cluster_api",
        install::providers,
    ),
    always(
        "the_real_ironic_inspects_every_machine_and_its_host_is_available",
        life::available,
    ),
    // Before an upgrade: nobody moves to a management cluster with an older release.
    of(
        Part::Foreign,
        "machines_join_a_cluster_of_another_infrastructure_which_moves_there_and_back_and_goes",
        foreign::lives,
    ),
    always(
        "a_generated_cluster_becomes_available_and_its_machines_are_nodes",
        life::runs,
    ),
    always(
        "disks_and_config_drives_hold_what_was_ordered_byte_by_byte",
        life::written,
    ),
    always(
        "workers_are_scaled_up_and_down_while_the_leader_is_killed",
        life::scaled,
    ),
    of(
        Part::Rolls,
        "workers_are_replaced_one_by_one_with_one_more_meanwhile",
        rolls::with_one_more,
    ),
    of(
        Part::Rolls,
        "workers_are_replaced_one_by_one_with_one_less_meanwhile",
        rolls::with_one_less,
    ),
    of(
        Part::Move,
        "a_cluster_moves_to_another_management_cluster_and_its_machines_run_on",
        moved::there,
    ),
    of(Part::Move, "it_moves_back_and_its_machines_run_on", moved::back),
    of(
        Part::Upgrade,
        "the_next_version_takes_over_without_an_order_to_ironic",
        upgrade::applied,
    ),
    of(
        Part::Upgrade,
        "deleting_the_providers_touches_no_host_and_installing_them_goes_on",
        upgrade::taken_away_and_back,
    ),
    always(
        "deleting_the_cluster_gives_every_host_back_with_blank_disks",
        life::deleted,
    ),
    of(
        Part::Kills,
        "a_life_in_which_leaders_are_killed_at_five_points_comes_to_the_same_end",
        kills::survived,
    ),
    always(
        "what_is_granted_is_used_or_explained_and_nothing_was_forbidden",
        audit::granted_is_used,
    ),
];

/// Proves them, and says whether all of them hold.
pub(super) fn prove(scene: &Scene<'_>, report: &mut Report) -> bool {
    let wanted = |claim: &&Claim| claim.part.is_none_or(|part| scene.parts.contains(&part));
    let claims: Vec<&Claim> = CLAIMS.iter().filter(wanted).collect();
    for (held, claim) in claims.iter().enumerate() {
        let proof = (claim.proof)(scene);
        let figures = proof.as_ref().map_or("FAILS", String::as_str);
        report.step(scene, &claim.name.replace('_', " "), figures);
        if !crate::claims::report(claim.name, proof) {
            println!("{held} of {} claims hold", claims.len());
            return false;
        }
    }
    println!("{} claims about the mission hold", claims.len());
    true
}
