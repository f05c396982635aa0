//! The metric of the certificate of the servers: how many days it is valid.

use std::fmt;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::servers::CertificateMetrics;

const DAY: f64 = 86_400.0;

/// Computes the days at each scrape.
#[derive(Debug)]
pub(super) struct DaysLeft {
    pub(super) certificates: CertificateMetrics,
    pub(super) clock: Arc<dyn Clock>,
}

impl Collector for DaysLeft {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        // Without a certificate, or when its end cannot be read, there is no value.
        let Some(until) = self.certificates.valid_until() else {
            return Ok(());
        };
        let left = until.signed_duration_since(self.clock.now());
        let days = left.as_seconds_f64() / DAY;
        let help = "Days until the certificate of webhooks and metrics expires; negative afterwards";
        let mut metric = encoder.encode_descriptor("metal3_certificate_days_left", help, None, MetricType::Gauge)?;
        metric.encode_gauge(&days)
    }
}
