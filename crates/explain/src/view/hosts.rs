//! Hosts that a filter selects.

use metal3_api::metal3::v1alpha1::BareMetalHost;

use super::host::HostRow;
use crate::order;
use crate::read::Read;
use crate::walk::Walk;

/// Which hosts are shown: those that match all that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// A label selector; empty for all.
    pub labels: String,
    /// The provisioning state.
    pub state: Option<String>,
    /// Only hosts with an error, whose reason or message contains this text.
    pub error: Option<String>,
    /// A part of the address of the BMC.
    pub bmc: Option<String>,
    /// A part of the URL of the image.
    pub image: Option<String>,
    /// The Cluster that uses the host.
    pub cluster: Option<String>,
}

impl Filter {
    /// Whether a host is shown. Labels are not compared here: the API server selects by them.
    #[must_use]
    pub fn matches(&self, row: &HostRow) -> bool {
        let has = |wanted: &Option<String>, found: &Option<String>| {
            let contains = |part: &String| found.as_ref().is_some_and(|found| found.contains(part.as_str()));
            wanted.as_ref().is_none_or(contains)
        };
        let is_failed = |part: &String| {
            row.error
                .as_ref()
                .is_some_and(|error| error.contains(part.as_str()) || row.message.contains(part.as_str()))
        };
        self.state.as_ref().is_none_or(|state| *state == row.state)
            && self
                .cluster
                .as_ref()
                .is_none_or(|cluster| row.cluster.as_ref() == Some(cluster))
            && self.error.as_ref().is_none_or(is_failed)
            && has(&self.bmc, &row.bmc)
            && has(&self.image, &row.image)
    }
}

pub(super) fn rows(walk: &mut Walk<'_>, filter: &Filter) -> Vec<HostRow> {
    let hosts = walk
        .each::<BareMetalHost>(&Read::selected::<BareMetalHost>(&filter.labels))
        .unwrap_or_default();
    let rows = hosts.iter().map(HostRow::of).filter(|row| filter.matches(row));
    let mut rows: Vec<HostRow> = rows.collect();
    order::sort_by(&mut rows, |a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    rows
}
