use chrono::DateTime;
use metal3_runtime::metrics::Metrics;

use super::cases::{ENOUGH, Step, case};
use super::file::notation;
use super::*;

#[test]
fn values_are_written_as_runs_that_promtool_expands() {
    let rows: [(&[Option<f64>], &str); 6] = [
        (&[], ""),
        (&[Some(1.0)], "1+0x0"),
        (&[Some(0.0), Some(0.0), Some(0.0), Some(5.0)], "0+0x2 5+0x0"),
        (&[Some(1.0), Some(3.0), Some(5.0), None, None], "1+2x2 _x2"),
        (&[None, Some(0.5), Some(0.5), Some(0.75)], "_x1 0.5+0x1 0.75+0x0"),
        (&[Some(7.0), Some(5.0), Some(3.0)], "7-2x2"),
    ];
    for (values, expected) in rows {
        assert_eq!(notation(values), expected, "{values:?}");
    }
}

#[test]
fn recording_has_a_gap_where_a_scrape_lacks_a_series() {
    let wanted = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let mut recording = Recording::every(1);
    recording.add("# TYPE a gauge\na{x=\"1 2\"} 3\nc 1\n", &wanted);
    recording.add("", &wanted);
    recording.add("a{x=\"1 2\"} 4\nb 2\n", &wanted);
    let series: Vec<_> = recording.series().collect();
    assert_eq!(
        series,
        [
            ("a{x=\"1 2\"}", &[Some(3.0), None, Some(4.0)][..]),
            ("b", &[None, None, Some(2.0)][..])
        ]
    );
    assert_eq!(recording.longest("a{x=\"1 2\"}"), 4.0);
}

#[test]
fn registered_metric_without_a_row_or_with_another_form_is_reported() {
    let text = "# TYPE metal3_hosts gauge\nmetal3_hosts{state=\"a,b\"} 1\n# TYPE metal3_ironic_requests counter\n\
                metal3_ironic_requests_total{method=\"GET\",result=\"x\"} 1\n# TYPE workqueue_work_duration_seconds histogram\n\
                workqueue_work_duration_seconds_bucket{le=\"1\",name=\"a\",controller=\"b\"} 1\n";
    assert_eq!(complaints(text), [""; 0]);
    for (text, complaint) in [
        ("# TYPE metal3_new gauge\n", "in no row"),
        ("# TYPE metal3_hosts counter\n", "is a counter"),
        (
            "# TYPE metal3_hosts gauge\nmetal3_hosts{host=\"a\"} 1\n",
            "has the labels host",
        ),
    ] {
        let found = complaints(text);
        assert!(found.len() == 1 && found[0].contains(complaint), "{found:?}");
    }
}

#[test]
fn scrape_with_an_address_or_the_password_of_a_machine_is_reported() {
    let text = |label: &str| format!("metal3_hosts{{state=\"{label}\"}} 1\n");
    assert_eq!(leaks(&text("inspecting")), [""; 0]);
    for label in [BMC_PASSWORD.to_owned(), metal3_sandbox::world::bmc_address(1)] {
        assert!(!leaks(&text(&label)).is_empty(), "{label}");
    }
}

fn servers_and_lease(metrics: &Metrics) {
    metrics.lease("capm3").leading(true);
    metrics.servers().begin("/validate").end(200, Duration::ZERO);
    metrics.servers().certificates().expires(Some(DateTime::UNIX_EPOCH));
}

/// Metrics of faults, of full slots, of requests by network and of autoscaled templates, of which this life need not have a sample.
const UNSEEN: [&str; 7] = [
    "metal3_controller_faults",
    "metal3_delayed__deprovisioning",
    "metal3_delayed__provisioning",
    "metal3_host_config_data_error",
    "metal3_host_error",
    "metal3_template_available_hosts",
    "rest_client_requests",
];

#[test]
fn every_metric_of_a_life_of_a_host_has_a_row_with_its_type_and_labels() {
    const STEPS: &[Step] = &[
        Step::Registry(servers_and_lease),
        Step::Hosts(1, None),
        Step::Minutes(20),
        Step::Cluster("0", ENOUGH),
        Step::Minutes(40),
        Step::DeleteCluster,
        Step::Minutes(20),
    ];
    let recording = world::play(&case("rows", "", STEPS, &[]), 0).unwrap();
    let rows = metrics::all().into_iter().filter(|row| !recording.has(row));
    let unseen = rows.map(|row| row.name).filter(|name| !UNSEEN.contains(name));
    assert_eq!(unseen.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn each_alert_has_a_case() {
    let raised: BTreeSet<&str> = CASES.iter().flat_map(|case| case.alerts).copied().collect();
    let alerts: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name).collect();
    assert_eq!(raised, alerts);
}

#[test]
fn name_that_no_case_has_is_an_error() {
    assert!(selected(Some("typo")).is_err());
    assert_eq!(selected(Some("clean")).unwrap().len(), 1);
    assert_eq!(selected(None).unwrap().len(), CASES.len() + 1);
}
