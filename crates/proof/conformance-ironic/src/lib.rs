//! Claims about Ironic, checked on the simulated and on a real Ironic by the same code.
//!
//! Each claim creates and deletes its own nodes. Claims of level 1 use `fake-hardware` and need a real Ironic with
//! `slow_power.conf`, whose power changes take longer than the lock timeout. Claims of higher levels use a machine each and
//! need `machines.conf`.

mod claims;
mod cost;
pub mod differ;
mod lab;
mod machine;
pub mod matrix;
mod pool;
mod recordings;
pub mod table;

use std::pin::Pin;

pub use cost::measure;
pub use lab::Lab;
pub use pool::Pool;
pub use recordings::Recorder;

use claims::{access, errors, feed, life, machines, media, microversion, record, restarts};

/// The topic of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Connection, microversion, login, TLS.
    Access,
    /// Behaviour that depends on the microversion.
    Microversion,
    /// Error responses.
    Error,
    /// Fields of a node and its update time.
    Record,
    /// State transitions.
    Transition,
    /// Behaviour that the change feed depends on.
    Feed,
}

/// The level of the lab that a claim needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Ironic with fake hardware, which skips wait states.
    L1,
    /// BMCs.
    L2,
    /// BMCs, and agents in ramdisks.
    L3,
}

/// Additional requirements of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A connection over sockets.
    Sockets,
    /// Exclusive use: the claim restarts Ironic or empties its database.
    Exclusive,
}

type CheckFuture<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// A statement about Ironic.
pub struct Claim {
    /// The statement in snake case.
    pub name: &'static str,
    /// Its topic.
    pub about: About,
    /// Its level.
    pub level: Level,
    /// Its additional requirements.
    pub needs: Needs,
    check: fn(&Lab) -> CheckFuture<'_>,
}

impl Claim {
    /// Checks it on an Ironic.
    ///
    /// # Errors
    /// Describes the actual behaviour.
    pub async fn check(&self, lab: &Lab) -> anyhow::Result<()> {
        (self.check)(lab).await
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
                check: |lab| Box::pin($module::$claim(lab)),
            }
        ),+];
    };
}

claims!(
    Access L1 access::the_first_response_negotiates_the_microversion_without_an_extra_request,
    Access L1 access::a_wrong_password_is_unauthorised(Sockets),
    Access L1 access::another_ca_is_untrusted_until_the_file_is_corrected(Sockets),
    Access L1 access::forty_concurrent_reads_all_succeed,
    Access L1 access::a_response_has_the_time_of_ironic,
    Microversion L1 microversion::a_microversion_outside_of_the_range_is_not_acceptable_and_the_response_has_the_range,
    Microversion L1 microversion::older_microversions_hide_a_newer_field_and_reject_it,
    Microversion L1 microversion::virtual_media_are_listed_since_their_microversion,
    Error L1 microversion::an_error_is_a_nested_json_document,
    Error L1 errors::a_driver_without_event_subscriptions_refuses_their_methods,
    Error L1 microversion::unknown_paths_and_unknown_methods_have_different_errors,
    Error L1 errors::an_unknown_node_is_not_found,
    Error L1 errors::a_node_name_must_be_unused,
    Error L1 errors::an_instance_belongs_to_one_node,
    Error L1 errors::an_unknown_driver_is_invalid,
    Error L1 errors::an_action_that_the_state_does_not_permit_is_wrong_state,
    Error L1 errors::removing_a_missing_value_is_invalid_and_an_empty_patch_is_accepted,
    Error L1 errors::the_second_of_two_concurrent_requests_is_locked_or_in_the_wrong_state,
    Error L1 errors::a_node_with_work_in_progress_is_locked,
    Error L1 errors::powering_off_a_node_with_disabled_power_off_is_wrong_state,
    Error L1 errors::a_port_address_must_be_unused_and_is_found_in_upper_and_lower_case,
    Error L1 errors::a_port_of_an_unknown_node_is_invalid,
    Error L1 errors::an_active_node_is_deleted_only_in_maintenance,
    Record L1 record::a_password_is_masked_in_responses,
    Record L1 record::a_new_node_has_no_update_time_and_a_patch_without_a_change_sets_it,
    Record L1 record::reading_the_boot_device_changes_the_update_time,
    Record L1 record::every_report_about_a_node_can_be_read,
    Record L1 record::an_inventory_is_not_found_before_an_inspection,
    Record L1 record::unknown_clean_steps_fail_the_cleaning_without_a_fault,
    Record L1 record::a_history_without_details_is_truncated,
    Record L1 record::the_power_sync_erases_the_error_of_a_failed_node_and_the_history_keeps_it,
    Record L1 record::maintenance_is_set_with_its_reason_and_cleared,
    Transition L1 life::a_node_passes_from_enroll_to_active_and_back,
    Transition L1 life::a_change_has_a_request_id,
    Transition L1 life::manual_cleaning_targets_manageable,
    Transition L1 life::an_abort_only_marks_a_service_step_that_is_not_abortable,
    Error L1 life::the_instance_of_a_node_in_transition_can_be_removed_only_in_maintenance,
    Error L1 life::a_protected_node_keeps_its_instance_and_is_not_deleted,
    Transition L1 life::a_failed_service_step_sets_maintenance_which_prevents_an_abort,
    Feed L1 feed::pages_by_update_time_omit_nodes_that_never_changed_and_pages_by_creation_do_not,
    Feed L1 feed::a_rejected_change_sets_the_update_time_and_a_read_does_not,
    Feed L1 feed::the_update_time_cannot_be_selected_by_fields,
    Feed L1 feed::a_full_page_has_a_next_link,
    Feed L1 feed::the_feed_follows_a_node_to_active_without_reading_it,
    Feed L1 feed::an_idle_round_is_one_request,
    Feed L1 feed::a_full_listing_reports_a_deleted_node,
    Error L2 machines::a_deployment_without_image_or_checksum_is_invalid,
    Record L2 machines::an_image_of_a_registry_needs_no_checksum_and_its_login_is_not_shown,
    Record L2 machines::a_boot_device_for_one_boot_is_set_on_the_machine,
    Record L2 machines::a_read_of_the_boot_device_logs_in_with_the_present_login_and_names_its_refusal,
    Record L2 machines::drifted_power_is_restored,
    Record L2 machines::a_dead_bmc_sets_maintenance_until_it_responds,
    Record L3 machines::an_agent_finds_its_node_only_by_the_address_of_a_port,
    Record L3 machines::an_inspection_creates_a_port_for_each_network_card,
    Record L3 machines::a_failed_inspection_powers_the_machine_off_and_the_history_keeps_the_error,
    Record L2 machines::an_inspection_by_the_bmc_finds_the_hardware_and_boots_nothing,
    Record L2 machines::the_firmware_versions_are_recorded_when_a_node_is_managed,
    Record L2 machines::virtual_media_are_attached_listed_and_detached,
    Error L1 media::an_image_that_no_drive_takes_is_rejected_at_once,
    Record L1 media::a_driver_without_a_drive_accepts_a_change_and_records_its_error,
    Record L2 media::an_attached_image_is_named_after_its_node,
    Record L2 machines::event_subscriptions_are_created_listed_and_deleted,
    Record L3 machines::a_machine_keeps_power_and_disk_when_its_node_is_deleted,
    Transition L3 machines::inspection_cleaning_and_deployment_wait_for_the_ramdisk,
    Transition L3 machines::an_abort_ends_inspection_cleaning_and_deployment_that_wait_for_their_ramdisk,
    Transition L3 machines::older_microversions_do_not_abort_a_deployment_but_remove_it,
    Transition L3 machines::a_live_image_is_booted_without_writing_and_its_rebuild_is_an_error_of_ironic,
    Transition L3 restarts::a_restart_fails_work_in_progress_except_work_that_waits_for_a_ramdisk(Exclusive),
    Record L3 restarts::a_machine_keeps_power_and_disk_when_the_database_is_lost(Exclusive),
    Feed L1 restarts::a_lost_database_is_reported_as_deleted_nodes(Exclusive),
);

/// Checks claims in sequence. Returns how many hold and the errors of the others.
pub async fn check(lab: &Lab, claims: impl IntoIterator<Item = &Claim>) -> (usize, Vec<String>) {
    let (mut held, mut failed) = (0_usize, Vec::new());
    for claim in claims {
        let found = claim.check(lab).await;
        record(claim, found, &mut held, &mut failed);
    }
    (held, failed)
}

/// Checks claims concurrently, for claims that mostly wait for machines.
pub async fn check_concurrently(lab: &Lab, claims: impl IntoIterator<Item = &Claim>) -> (usize, Vec<String>) {
    let (mut held, mut failed) = (0_usize, Vec::new());
    let under_way = claims.into_iter().map(async |claim| (claim, claim.check(lab).await));
    for (claim, found) in futures::future::join_all(under_way).await {
        record(claim, found, &mut held, &mut failed);
    }
    (held, failed)
}

fn record(claim: &Claim, found: anyhow::Result<()>, held: &mut usize, failed: &mut Vec<String>) {
    match found {
        Ok(()) => *held = held.saturating_add(1),
        Err(error) => failed.push(format!("{}: {error:#}", claim.name.replace('_', " "))),
    }
}
