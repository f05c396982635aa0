//! The metric of the hosts that a machine of a template could take now.

use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    namespace: String,
    template: String,
}

/// The gauge, with a series for each template that an autoscaled MachineDeployment uses.
#[derive(Default)]
pub(super) struct AvailableHosts(Family<Labels, Gauge>);

impl AvailableHosts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let gauge = Self::default();
        let help = "hosts that a machine of an autoscaled template could take now";
        metrics.register("metal3_template_available_hosts", help, gauge.0.clone());
        gauge
    }

    pub(super) fn set(&self, template: &Key, hosts: usize) {
        let hosts = i64::try_from(hosts).unwrap_or(i64::MAX);
        self.0.get_or_create(&labels(template)).set(hosts);
    }

    pub(super) fn remove(&self, template: &Key) {
        self.0.remove(&labels(template));
    }
}

fn labels(template: &Key) -> Labels {
    Labels {
        namespace: template.namespace.clone(),
        template: template.name.clone(),
    }
}
