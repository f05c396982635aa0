//! What the client takes for granted about Ironic, held against a real one: `contract --credentials endpoint.json`.
//!
//! The Ironic is one with fake hardware whose power changes take longer than a lock is waited for: start it with
//! `slow_power.conf` as its second configuration file. Each claim makes its own nodes of `fake-hardware` and deletes them. Nothing is recorded; the last line counts the
//! claims that hold, and the program fails when one does not.

mod access;
mod cost;
mod feed;
mod lab;
mod life;
mod record;
mod refusals;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Parser;
use lab::Lab;

#[derive(Parser)]
struct Arguments {
    /// The file that starting the real Ironic wrote: url, ca, username, password.
    #[arg(long)]
    credentials: PathBuf,
    /// Measure the feed with so many nodes instead, a tenth of them busy. They stay: use an Ironic of its own.
    #[arg(long, value_name = "NODES")]
    measure_feed: Option<u32>,
}

/// Runs claims by their names, in order.
macro_rules! claims {
    ($lab:expr, $failed:expr, $($module:ident :: $claim:ident),+ $(,)?) => {{
        let mut held = 0_u32;
        $(
            let name = stringify!($claim).replace('_', " ");
            match $module::$claim($lab).await {
                Ok(()) => {
                    held = held.saturating_add(1);
                    println!("holds: {name}");
                }
                Err(error) => {
                    $failed.push(name.clone());
                    println!("FAILS: {name}: {error:#}");
                }
            }
        )+
        held
    }};
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another crypto provider is installed already");
    }
    let Arguments {
        credentials,
        measure_feed,
    } = Arguments::parse();
    let lab = &Lab::open(&credentials)
        .await
        .with_context(|| format!("cannot use {}; start the real Ironic first", credentials.display()))?;
    if let Some(nodes) = measure_feed {
        return cost::measure(lab, nodes).await;
    }
    let mut failed: Vec<String> = Vec::new();
    let held = claims!(
        lab,
        failed,
        access::the_first_answer_settles_the_dialect_without_a_request_of_its_own,
        access::a_wrong_password_is_unauthorised,
        access::another_ca_is_untrusted_until_the_file_is_put_right,
        access::forty_reads_at_once_all_come_back,
        access::an_answer_shows_ironics_clock,
        refusals::an_unknown_node_is_not_found,
        refusals::a_name_that_is_taken_exists,
        refusals::an_unknown_driver_is_invalid,
        refusals::an_action_that_does_not_fit_the_state_is_wrong_state,
        refusals::removing_what_is_not_there_is_invalid_and_an_empty_patch_is_taken,
        refusals::the_loser_of_a_race_is_locked_or_in_the_wrong_state,
        refusals::a_node_at_work_is_locked,
        refusals::a_node_that_may_not_be_switched_off_says_wrong_state,
        refusals::an_address_that_is_taken_exists_and_is_found_in_any_case,
        refusals::a_port_of_an_unknown_node_is_invalid,
        refusals::an_active_node_is_deleted_only_in_maintenance,
        record::a_password_comes_back_masked,
        record::a_new_node_has_never_changed_and_a_patch_of_the_same_value_changes_it,
        record::asking_for_the_boot_device_changes_the_record,
        record::every_report_about_a_node_can_be_read,
        record::an_inventory_is_not_found_before_an_inspection,
        record::unknown_steps_fail_the_cleaning_before_it_begins_and_set_no_fault,
        record::maintenance_is_set_with_its_reason_and_cleared,
        life::a_node_lives_from_enroll_to_active_and_back,
        life::a_change_carries_a_request_id,
        feed::nodes_that_never_changed_vanish_between_pages_by_time_and_not_by_creation,
        feed::a_full_page_has_a_next_one,
        feed::the_feed_follows_a_node_to_active_without_reading_it,
        feed::an_idle_round_is_one_request,
        feed::a_deleted_node_is_told_by_a_full_listing,
    );
    if !failed.is_empty() {
        bail!("{held} claims hold, {} do not: {}", failed.len(), failed.join("; "));
    }
    println!("{held} claims hold");
    Ok(())
}
