//! What takes longest, and what fails: as far as objects show it.

use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind as _;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use serde::Serialize;

use super::host::HostRow;
use crate::listed::Listed;
use crate::order;
use crate::read::Read;
use crate::steps::{Step, median};
use crate::values::name;
use crate::walk::conditions::{first_bad, since};
use crate::walk::{MACHINE_ORDER, Walk};

/// Rows of each table.
const MOST: usize = 10;

/// The tables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Top {
    /// How long each step of a host takes.
    pub steps: Vec<StepRow>,
    /// Hosts with errors, the most failures first.
    pub errors: Vec<ErrorRow>,
    /// What waits or is in progress, the longest first.
    pub waits: Vec<WaitRow>,
}

/// One step of a host's life, over all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRow {
    /// The step.
    pub step: String,
    /// Hosts that completed it.
    pub hosts: usize,
    /// The median, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_seconds: Option<i64>,
    /// The longest, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_seconds: Option<i64>,
    /// The host that took longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_host: Option<String>,
    /// Hosts that are in it.
    pub running: usize,
}

/// A host with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorRow {
    /// The namespace.
    pub namespace: String,
    /// The host.
    pub host: String,
    /// The reason of the error.
    pub reason: String,
    /// Failures in a row.
    pub count: i64,
    /// The message.
    pub message: String,
}

/// An object that waits or is in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitRow {
    /// The namespace.
    pub namespace: String,
    /// Kind and name.
    pub object: String,
    /// The state or reason.
    pub reason: String,
    /// Since when.
    pub since: Time,
    /// For how long, in seconds.
    pub seconds: i64,
}

pub(super) fn top(walk: &mut Walk<'_>, now: Time) -> Top {
    let hosts: Arc<Listed<BareMetalHost>> = walk.each(&Read::list::<BareMetalHost>(None)).unwrap_or_default();
    let machines: Arc<Listed<Metal3Machine>> = walk.each(&Read::list::<Metal3Machine>(None)).unwrap_or_default();
    let mut waits: Vec<WaitRow> = hosts.iter().filter_map(|host| waiting_host(host, now)).collect();
    waits.extend(machines.iter().filter_map(|machine| waiting_machine(machine, now)));
    order::sort_by(&mut waits, |a, b| {
        (a.since, &a.namespace, &a.object).cmp(&(b.since, &b.namespace, &b.object))
    });
    waits.truncate(MOST);
    Top {
        steps: steps(&hosts),
        errors: errors(&hosts),
        waits,
    }
}

fn steps(hosts: &Listed<BareMetalHost>) -> Vec<StepRow> {
    let row = |step: Step| {
        let completed = step.completed(hosts.iter());
        let longest = completed.last();
        StepRow {
            step: step.as_str().to_owned(),
            hosts: completed.len(),
            median_seconds: median(&completed),
            longest_seconds: longest.map(|(seconds, _)| *seconds),
            longest_host: longest.map(|(_, host)| (*host).to_owned()),
            running: hosts.iter().filter(|host| step.is_running(host)).count(),
        }
    };
    Step::ALL.into_iter().map(row).collect()
}

fn errors(hosts: &Listed<BareMetalHost>) -> Vec<ErrorRow> {
    let rows = hosts.iter().filter_map(|host| {
        let row = HostRow::of(host);
        Some(ErrorRow {
            namespace: row.namespace,
            host: row.name,
            reason: row.error?,
            count: host.status.error_count,
            message: row.message,
        })
    });
    let mut rows: Vec<ErrorRow> = rows.collect();
    order::sort_by(&mut rows, |a, b| {
        (-a.count, &a.namespace, &a.host).cmp(&(-b.count, &b.namespace, &b.host))
    });
    rows.truncate(MOST);
    rows
}

fn waiting_host(host: &BareMetalHost, now: Time) -> Option<WaitRow> {
    let is_settled = matches!(
        host.status.provisioning.state,
        ProvisioningState::Available
            | ProvisioningState::Ready
            | ProvisioningState::Provisioned
            | ProvisioningState::ExternallyProvisioned
            | ProvisioningState::Unmanaged
    );
    let row = HostRow::of(host);
    let reason = row.error.unwrap_or(row.state);
    let since = row.since.filter(|_| !is_settled)?;
    Some(wait(
        &row.namespace,
        BareMetalHost::KIND,
        &row.name,
        (reason, since),
        now,
    ))
}

fn waiting_machine(machine: &Metal3Machine, now: Time) -> Option<WaitRow> {
    let bad = first_bad(&machine.status.conditions, &MACHINE_ORDER)?;
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let state = (bad.reason.clone(), since(bad)?);
    Some(wait(
        namespace,
        Metal3Machine::KIND,
        name(&machine.metadata),
        state,
        now,
    ))
}

fn wait(namespace: &str, kind: &str, name: &str, (reason, since): (String, Time), now: Time) -> WaitRow {
    WaitRow {
        namespace: namespace.to_owned(),
        object: format!("{kind}/{name}"),
        reason,
        since,
        seconds: (now.get() - since.get()).num_seconds().max(0),
    }
}
