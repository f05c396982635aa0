//! The host as an owner of its HostUpdatePolicy, so that the policy goes with the host.

use metal3_runtime::patch::Changes;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;

use crate::action::Action;
use crate::node::reported::owners;
use crate::plan::planner::{Planner, document};

/// Adds the write of the owner to a plan.
pub(crate) fn add(planner: &Planner<'_>, actions: &mut Vec<Action>) {
    let Observed::Present(policy) = planner.facts.update_policy else {
        return;
    };
    let is_refused = planner.facts.refused_reports.policy;
    if !planner.may_report || is_refused || planner.is_deleting() || policy.metadata.deletion_timestamp.is_some() {
        return;
    }
    let version = policy.metadata.resource_version.as_deref();
    let version = version.and_then(|text| ResourceVersion::parse(text).ok());
    let Some((owners, version)) = owners(&policy.metadata, planner.host(), false).zip(version) else {
        return;
    };
    let mut owned = policy.clone();
    owned.metadata.owner_references = Some(owners);
    let patch = Changes::between(&document(policy), &document(&owned)).main;
    actions.extend(patch.map(|patch| Action::PatchUpdatePolicy(patch.with_precondition(&version))));
}
