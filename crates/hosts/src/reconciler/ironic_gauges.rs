//! Metrics of each Ironic that a scrape reads. With several, each series has the name of its Ironic as an additional label.

use std::fmt;
use std::time::Duration;

use metal3_ironic::statistics::{BOUNDS, Statistics};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::sessions::Sessions;

/// The label that names an Ironic of several.
const IRONIC: &str = "ironic";

/// What is encoded of one Ironic.
struct OfIronic<'a> {
    /// Its name, if it is one of several.
    name: Option<&'a str>,
    statistics: Statistics,
    lag: Option<Duration>,
    microversion: Option<String>,
}

impl OfIronic<'_> {
    fn labels<'a>(&'a self, own: &[(&'static str, &'a str)]) -> Vec<(&'static str, &'a str)> {
        let name = self.name.map(|name| (IRONIC, name));
        own.iter().copied().chain(name).collect()
    }
}

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, sessions: &Sessions) -> Result<(), fmt::Error> {
    let is_one = sessions.names().is_one();
    let observed = sessions.iter().map(|(name, session)| OfIronic {
        name: (!is_one).then_some(&**name),
        statistics: session.statistics(),
        lag: session.lag(),
        microversion: session.microversion().map(|microversion| microversion.to_string()),
    });
    let all: Vec<OfIronic<'_>> = observed.collect();
    requests(encoder, &all)?;
    latencies(encoder, &all)?;
    lags(encoder, &all)?;
    versions(encoder, &all)
}

fn requests(encoder: &mut DescriptorEncoder<'_>, all: &[OfIronic<'_>]) -> Result<(), fmt::Error> {
    let help = "Requests to Ironic, by method and result";
    let mut metric = encoder.encode_descriptor("metal3_ironic_requests", help, None, MetricType::Counter)?;
    for ironic in all {
        for ((method, ending), requests) in &ironic.statistics.requests {
            let by = ironic.labels(&[("method", method.name()), ("result", ending.name())]);
            metric
                .encode_family(&by)?
                .encode_counter::<NoLabelSet, u64, u64>(requests, None)?;
        }
    }
    Ok(())
}

fn latencies(encoder: &mut DescriptorEncoder<'_>, all: &[OfIronic<'_>]) -> Result<(), fmt::Error> {
    let (name, help) = (
        "metal3_ironic_request_seconds",
        "Seconds a request to Ironic took, by method",
    );
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for ironic in all {
        for (method, latency) in &ironic.statistics.latencies {
            let by = ironic.labels(&[("method", method.name())]);
            let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(latency.buckets).collect();
            metric.encode_family(&by)?.encode_histogram::<NoLabelSet>(
                latency.total.as_secs_f64(),
                latency.count,
                &buckets,
                None,
            )?;
        }
    }
    Ok(())
}

fn lags(encoder: &mut DescriptorEncoder<'_>, all: &[OfIronic<'_>]) -> Result<(), fmt::Error> {
    if all.iter().all(|ironic| ironic.lag.is_none()) {
        return Ok(());
    }
    let help = "Seconds since the last completed poll of Ironic began, in the process that leads";
    let name = "metal3_ironic_feed_lag_seconds";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for ironic in all {
        let Some(lag) = ironic.lag.map(|lag| lag.as_secs_f64()) else {
            continue;
        };
        match ironic.name {
            Some(_) => metric.encode_family(&ironic.labels(&[]))?.encode_gauge(&lag)?,
            None => metric.encode_gauge(&lag)?,
        }
    }
    Ok(())
}

fn versions(encoder: &mut DescriptorEncoder<'_>, all: &[OfIronic<'_>]) -> Result<(), fmt::Error> {
    if all.iter().all(|ironic| ironic.microversion.is_none()) {
        return Ok(());
    }
    let help = "API version in use with Ironic";
    let mut metric = encoder.encode_descriptor("metal3_ironic", help, None, MetricType::Info)?;
    for ironic in all {
        if let Some(microversion) = &ironic.microversion {
            metric.encode_info(&ironic.labels(&[("microversion", microversion)]))?;
        }
    }
    Ok(())
}
