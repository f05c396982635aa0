//! What is claimed of Ironic, held against the simulated one and against the real one by the same code.
//!
//! Each claim makes its own nodes and deletes them. Those of level 1 are of `fake-hardware`; the real Ironic is one whose
//! power changes take longer than a lock is waited for: it is started with `slow_power.conf` as its second configuration
//! file. Those of the levels above have a machine each; there the file is `machines.conf`.

mod claims;
mod cost;
pub mod differ;
mod lab;
mod machine;
pub mod matrix;
mod recordings;
pub mod table;

use std::pin::Pin;

pub use cost::measure;
pub use lab::Lab;
pub use machine::Pool;
pub use recordings::Recorder;

use claims::{access, dialect, feed, life, machines, record, refusals, upheaval};

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Connection, dialect, login, trust.
    Access,
    /// What depends on the version of the API.
    Dialect,
    /// The form and status of a refusal.
    Refusal,
    /// What a record shows, and what moves its time.
    Record,
    /// Moving through the states.
    Transition,
    /// The rules that the change feed lives on.
    Feed,
}

/// The least that must be real for a claim to be proven: what the levels of the lab are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Ironic with its fake hardware, which passes no wait states.
    L1,
    /// BMCs.
    L2,
    /// BMCs, and agents in ramdisks.
    L3,
}

/// What else a claim takes than an Ironic of its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Sockets: there is nothing to claim of an Ironic without.
    Sockets,
    /// That nobody else is there: Ironic dies, and may forget everything.
    Peace,
}

type Held<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// Something that is true of Ironic.
pub struct Claim {
    /// In words with underscores.
    pub name: &'static str,
    /// What it is about.
    pub about: About,
    /// What it takes to prove it.
    pub level: Level,
    /// What it takes beside.
    pub needs: Needs,
    hold: fn(&Lab) -> Held<'_>,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Claim {
    /// Holds it against an Ironic.
    ///
    /// # Errors
    /// Says what was found instead.
    pub async fn hold(&self, lab: &Lab) -> anyhow::Result<()> {
        (self.hold)(lab).await
    }
}

macro_rules! claims {
    (@needs) => { Needs::Nothing };
    (@needs $needs:ident) => { Needs::$needs };
    ($($about:ident $level:ident $module:ident :: $claim:ident $(($needs:ident))?),+ $(,)?) => {
        /// Every claim.
        pub const CLAIMS: &[Claim] = &[$(
            Claim {
                name: stringify!($claim),
                about: About::$about,
                level: Level::$level,
                needs: claims!(@needs $($needs)?),
                hold: |lab| Box::pin($module::$claim(lab)),
            }
        ),+];
    };
}

claims!(
    Access L1 access::the_first_answer_settles_the_dialect_without_a_request_of_its_own,
    Access L1 access::a_wrong_password_is_unauthorised(Sockets),
    Access L1 access::another_ca_is_untrusted_until_the_file_is_put_right(Sockets),
    Access L1 access::forty_reads_at_once_all_come_back,
    Access L1 access::an_answer_shows_ironics_clock,
    Dialect L1 dialect::a_dialect_beyond_the_range_is_not_acceptable_and_the_answer_names_the_range,
    Dialect L1 dialect::a_field_is_hidden_from_older_dialects_and_refused_there,
    Dialect L1 dialect::virtual_media_are_listed_since_their_dialect,
    Refusal L1 dialect::a_refusal_is_a_document_within_a_document,
    Refusal L1 dialect::paths_and_methods_that_ironic_does_not_have_are_told_apart,
    Refusal L1 refusals::an_unknown_node_is_not_found,
    Refusal L1 refusals::a_name_that_is_taken_exists,
    Refusal L1 refusals::an_instance_belongs_to_one_node,
    Refusal L1 refusals::an_unknown_driver_is_invalid,
    Refusal L1 refusals::an_action_that_does_not_fit_the_state_is_wrong_state,
    Refusal L1 refusals::removing_what_is_not_there_is_invalid_and_an_empty_patch_is_taken,
    Refusal L1 refusals::the_loser_of_a_race_is_locked_or_in_the_wrong_state,
    Refusal L1 refusals::a_node_at_work_is_locked,
    Refusal L1 refusals::a_node_that_may_not_be_switched_off_says_wrong_state,
    Refusal L1 refusals::an_address_that_is_taken_exists_and_is_found_in_any_case,
    Refusal L1 refusals::a_port_of_an_unknown_node_is_invalid,
    Refusal L1 refusals::an_active_node_is_deleted_only_in_maintenance,
    Record L1 record::a_password_comes_back_masked,
    Record L1 record::a_new_node_has_never_changed_and_a_patch_of_the_same_value_changes_it,
    Record L1 record::asking_for_the_boot_device_changes_the_record,
    Record L1 record::every_report_about_a_node_can_be_read,
    Record L1 record::an_inventory_is_not_found_before_an_inspection,
    Record L1 record::unknown_steps_fail_the_cleaning_before_it_begins_and_set_no_fault,
    Record L1 record::a_history_is_cut_off_where_nobody_asks_for_details,
    Record L1 record::a_failed_node_loses_its_words_at_the_next_look_at_its_power_and_the_history_keeps_them,
    Record L1 record::maintenance_is_set_with_its_reason_and_cleared,
    Transition L1 life::a_node_lives_from_enroll_to_active_and_back,
    Transition L1 life::a_change_carries_a_request_id,
    Transition L1 life::cleaning_by_hand_heads_back_for_manageable,
    Transition L1 life::a_service_that_waits_in_a_step_of_its_own_is_only_marked_by_an_abort,
    Refusal L1 life::a_node_in_transition_gives_up_its_instance_in_maintenance_alone,
    Transition L1 life::a_service_step_that_fails_sets_maintenance_which_stands_in_the_way_of_an_abort,
    Feed L1 feed::nodes_that_never_changed_vanish_between_pages_by_time_and_not_by_creation,
    Feed L1 feed::a_change_that_was_refused_moves_the_time_and_a_read_does_not,
    Feed L1 feed::the_time_of_a_change_is_not_given_by_fields,
    Feed L1 feed::a_full_page_has_a_next_one,
    Feed L1 feed::the_feed_follows_a_node_to_active_without_reading_it,
    Feed L1 feed::an_idle_round_is_one_request,
    Feed L1 feed::a_deleted_node_is_told_by_a_full_listing,
    Refusal L2 machines::a_deployment_without_image_or_checksum_is_invalid,
    Record L2 machines::the_boot_device_that_is_set_for_once_is_the_machines,
    Record L2 machines::power_that_drifted_is_forced_back,
    Record L2 machines::a_dead_bmc_puts_its_node_aside_until_it_is_back,
    Record L3 machines::an_inspection_makes_a_port_of_each_network_card,
    Record L3 machines::a_failed_inspection_switches_its_machine_off_and_keeps_its_words_in_the_history,
    Record L2 machines::the_firmware_of_a_machine_is_known_when_it_is_managed,
    Record L2 machines::virtual_media_are_attached_listed_and_taken_out_again,
    Record L3 machines::a_machine_keeps_power_and_disk_when_its_node_is_deleted,
    Transition L3 machines::a_life_waits_for_its_ramdisk_when_it_is_inspected_cleaned_deployed_and_cleaned_again,
    Transition L3 machines::an_abort_ends_inspection_cleaning_and_deployment_that_wait_for_their_ramdisk,
    Transition L3 machines::a_live_image_is_booted_and_never_written_and_its_rebuild_is_an_error_of_ironic,
    Transition L3 upheaval::a_restart_fails_the_work_at_hand_and_keeps_what_waits_for_a_ramdisk(Peace),
    Record L3 upheaval::a_machine_keeps_power_and_disk_when_the_database_is_lost(Peace),
    Feed L1 upheaval::an_emptied_database_is_told_as_nodes_that_are_gone(Peace),
);

/// Holds the claims against an Ironic, in order: how many hold, and what was found of the others.
pub async fn hold(lab: &Lab, claims: impl IntoIterator<Item = &Claim>) -> (usize, Vec<String>) {
    let (mut held, mut failed) = (0_usize, Vec::new());
    for claim in claims {
        let found = claim.hold(lab).await;
        enter(claim, found, &mut held, &mut failed);
    }
    (held, failed)
}

/// The same side by side, for claims that mostly wait for machines.
pub async fn hold_at_once(lab: &Lab, claims: impl IntoIterator<Item = &Claim>) -> (usize, Vec<String>) {
    let (mut held, mut failed) = (0_usize, Vec::new());
    let under_way = claims.into_iter().map(async |claim| (claim, claim.hold(lab).await));
    for (claim, found) in futures::future::join_all(under_way).await {
        enter(claim, found, &mut held, &mut failed);
    }
    (held, failed)
}

fn enter(claim: &Claim, found: anyhow::Result<()>, held: &mut usize, failed: &mut Vec<String>) {
    match found {
        Ok(()) => *held = held.saturating_add(1),
        Err(error) => failed.push(format!("{}: {error:#}", claim.name.replace('_', " "))),
    }
}
