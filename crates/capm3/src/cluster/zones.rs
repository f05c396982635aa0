//! The condition about the data templates of deployment zones.
//!
//! The claim of a host fixes the name of the template in its machine, so machines that take their data from a zone wait for it before:
//! by what they observe themselves, because the condition is written later.

use metal3_api::infrastructure::conditions::cluster;
use metal3_api::infrastructure::v1beta2::{DeploymentZone, Metal3Cluster, Metal3DataTemplate};
use metal3_runtime::cache::{Change, Key};
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::plan::Observed;

use crate::controller::caches::RelatedKeys;

/// A zone with a data template.
#[derive(Debug, Clone)]
pub struct ZoneTemplate {
    /// Name of the zone.
    pub zone: String,
    /// Name of the template.
    pub template: String,
    /// Whether it exists.
    pub state: Observed<()>,
}

/// The names of zones and templates.
fn named(zone: &DeploymentZone) -> Option<(&str, &str)> {
    let template = zone.data_template.as_ref()?.name.as_deref()?;
    Some((zone.name.as_str(), template)).filter(|(_, template)| !template.is_empty())
}

/// The templates of an object's zones.
pub(crate) fn templates_of(object: &Metal3Cluster) -> impl Iterator<Item = &str> {
    object
        .spec
        .deployment_zones
        .iter()
        .filter_map(named)
        .map(|(_, template)| template)
}

/// Whether the templates of the zones exist.
pub(crate) fn observe(object: &Metal3Cluster, find: impl Fn(&str) -> Observed<()>) -> Vec<ZoneTemplate> {
    let zones = object.spec.deployment_zones.iter().filter_map(named);
    let observed = zones.map(|(zone, template)| ZoneTemplate {
        zone: zone.to_owned(),
        template: template.to_owned(),
        state: find(template),
    });
    observed.collect()
}

/// The condition; `None` without a zone that has a template. One that is missing counts before one that is not known.
pub(crate) fn condition(templates: &[ZoneTemplate]) -> Option<ConditionBuilder> {
    let path = |one: &ZoneTemplate| format!("spec.deploymentZones[{}].dataTemplate", one.zone);
    let mut lines = Vec::new();
    let mut unknown = Vec::new();
    for one in templates {
        let (path, template) = (path(one), &one.template);
        match &one.state {
            Observed::Present(()) => {}
            Observed::Absent => lines.push(format!(
                "{path}: Metal3DataTemplate {template} does not exist; create it, or correct the name"
            )),
            Observed::Unknown(why) => unknown.push(format!(
                "{path}: Metal3DataTemplate {template} cannot be read: {why}; correct it"
            )),
        }
    }
    let type_ = cluster::ZONES_READY;
    match (templates.is_empty(), lines.is_empty(), unknown.is_empty()) {
        (true, ..) => None,
        (_, false, _) => {
            let (reason, message) = (cluster::REASON_DATA_TEMPLATE_NOT_FOUND, bounded(&lines));
            Some(ConditionBuilder::mark_false(type_, reason, Severity::Warning, message))
        }
        (_, true, false) => {
            let (reason, message) = (cluster::REASON_DATA_TEMPLATE_UNREADABLE, bounded(&unknown));
            Some(ConditionBuilder::mark_unknown(type_, reason, message))
        }
        (_, true, true) => Some(ConditionBuilder::mark_true(type_, cluster::REASON_DATA_TEMPLATES_FOUND)),
    }
}

/// Lines in a message. A user decides how many zones there are, and how long their names.
const MOST_LINES: usize = 8;

fn bounded(lines: &[String]) -> String {
    let mut shown = lines.iter().take(MOST_LINES).cloned().collect::<Vec<_>>();
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join("\n")
}

impl RelatedKeys {
    /// The Metal3Clusters to reconcile after a data template appears, disappears, or changes between readable and not.
    pub(crate) fn metal3_clusters_of_data_template(&self, change: &Change<'_, Metal3DataTemplate>) -> Vec<Key> {
        let Some(template) = change.key().filter(|_| !change.is_same(|_, _| true)) else {
            return Vec::new();
        };
        self.metal3_clusters
            .read(|ones| ones.by_zone_template.get(&template).cloned().collect())
    }
}
