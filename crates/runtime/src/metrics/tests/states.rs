use std::time::Duration;

use chrono::DateTime;

use super::*;

fn recorder(clock: &Arc<ManualClock>) -> (Metrics, StateRecorder) {
    let metrics = Metrics::new();
    let states = metrics.states(Subject::Host, Arc::<ManualClock>::clone(clock));
    (metrics, states)
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(DateTime::from_timestamp(1_800_000_000, 0).unwrap()))
}

fn of(metrics: &Metrics, name: &str, state: &str) -> String {
    value(&metrics.render(), &format!("{name}{{state=\"{state}\"}}")).unwrap()
}

#[test]
fn age_counts_from_the_first_observation_of_the_present_state() {
    let clock = clock();
    let (metrics, states) = recorder(&clock);
    states.set(key("h"), "registering", None);
    clock.advance(Duration::from_secs(200));
    states.set(key("h"), "registering", None);
    assert_eq!(of(&metrics, "metal3_host_state_oldest_seconds", "registering"), "200.0");
    states.set(key("h"), "inspecting", None);
    clock.advance(Duration::from_secs(100));
    assert_eq!(of(&metrics, "metal3_host_state_oldest_seconds", "registering"), "0.0");
    assert_eq!(of(&metrics, "metal3_host_state_oldest_seconds", "inspecting"), "100.0");
    states.remove(&key("h"));
    assert_eq!(of(&metrics, "metal3_hosts", "inspecting"), "0.0");
}

#[test]
fn recorded_begin_outlives_a_restart_and_one_in_the_future_does_not_count() {
    let clock = clock();
    let (metrics, states) = recorder(&clock);
    states.set(
        key("old"),
        "inspecting",
        Some(clock.now() - chrono::TimeDelta::minutes(31)),
    );
    states.set(
        key("future"),
        "deleting",
        Some(clock.now() + chrono::TimeDelta::days(9)),
    );
    clock.advance(Duration::from_secs(10));
    assert_eq!(of(&metrics, "metal3_host_state_oldest_seconds", "inspecting"), "1870.0");
    assert_eq!(of(&metrics, "metal3_host_state_oldest_seconds", "deleting"), "10.0");
}

#[test]
fn objects_above_the_objective_are_counted_where_there_is_one() {
    let clock = clock();
    let (metrics, states) = recorder(&clock);
    for (name, state) in [
        ("a", "registering"),
        ("b", "registering"),
        ("c", "provisioned"),
        ("d", "deleting"),
    ] {
        states.set(key(name), state, None);
    }
    let above = |state: &str| {
        value(
            &metrics.render(),
            &format!("metal3_hosts_above_objective{{state=\"{state}\"}}"),
        )
    };
    clock.advance(Duration::from_mins(10));
    assert_eq!(
        above("registering").as_deref(),
        Some("0.0"),
        "the objective itself is no excess"
    );
    clock.advance(Duration::from_secs(1));
    assert_eq!(above("registering").as_deref(), Some("2.0"));
    assert_eq!(above("deleting").as_deref(), Some("0.0"));
    assert_eq!(above("provisioned"), None);
    assert_eq!(
        of(&metrics, "metal3_host_state_objective_seconds", "registering"),
        "600.0"
    );
    let bucket = |le: &str| {
        let series = format!("metal3_host_state_age_seconds_bucket{{le=\"{le}\",state=\"registering\"}}");
        value(&metrics.render(), &series).unwrap()
    };
    assert_eq!(
        (bucket("600.0"), bucket("900.0"), bucket("+Inf")),
        ("0".into(), "2".into(), "2".into())
    );
}

#[test]
fn time_without_work_does_not_count_for_the_objective() {
    let clock = clock();
    let (metrics, states) = recorder(&clock);
    let (above, oldest) = ("metal3_hosts_above_objective", "metal3_host_state_oldest_seconds");
    let began = Some(clock.now());
    states.set(key("h"), "registering", began);
    states.hold(&key("h"), true);
    clock.advance(Duration::from_mins(20));
    assert_eq!(of(&metrics, above, "registering"), "0.0");
    assert_eq!(
        of(&metrics, oldest, "registering"),
        "1200.0",
        "the age stays that of the state"
    );
    states.set(key("h"), "registering", began);
    states.hold(&key("h"), false);
    clock.advance(Duration::from_mins(10));
    assert_eq!(of(&metrics, above, "registering"), "0.0");
    clock.advance(Duration::from_secs(1));
    assert_eq!(of(&metrics, above, "registering"), "1.0");
    let (restarted, states_of_restarted) = recorder(&clock);
    states_of_restarted.set(key("h"), "registering", began);
    states_of_restarted.hold(&key("h"), false);
    assert_eq!(
        of(&restarted, above, "registering"),
        "0.0",
        "no pause is known of the time before a process began"
    );
    assert_eq!(of(&restarted, oldest, "registering"), "1801.0");
    clock.advance(Duration::from_secs(601));
    assert_eq!(of(&restarted, above, "registering"), "1.0");
    states.set(key("h"), "inspecting", None);
    states.hold(&key("h"), false);
    clock.advance(Duration::from_mins(31));
    assert_eq!(
        of(&metrics, above, "inspecting"),
        "1.0",
        "another state counts from its begin"
    );
}

#[test]
fn objectives_of_the_flags_replace_the_defaults() {
    let clock = clock();
    let mut objectives = Objectives::default();
    assert!(objectives.replace("host/provisioned", Duration::from_secs(5)));
    let metrics = Metrics::with_objectives(objectives);
    let states = metrics.states(Subject::Host, Arc::<ManualClock>::clone(&clock));
    states.set(key("h"), "provisioned", None);
    clock.advance(Duration::from_secs(6));
    assert_eq!(
        of(&metrics, "metal3_host_state_objective_seconds", "provisioned"),
        "5.0"
    );
    assert_eq!(of(&metrics, "metal3_hosts_above_objective", "provisioned"), "1.0");
}

#[test]
fn ten_thousand_hosts_with_hostile_states_have_as_many_series_as_one() {
    let clock = clock();
    let series = |hosts: u32| {
        let (metrics, states) = recorder(&clock);
        for number in 0..hosts {
            states.set(key(&number.to_string()), &format!("text of a tenant {number}"), None);
        }
        let began = metal3_domain::clock::SystemClock::start();
        let text = metrics.render();
        println!("{hosts} hosts: rendered in {:?}", began.monotonic().since_start());
        assert!(!text.contains("tenant"));
        assert_eq!(of(&metrics, "metal3_hosts", "other"), format!("{hosts}.0"));
        text.lines().filter(|line| line.starts_with("metal3_")).count()
    };
    assert_eq!(series(1), series(10_000));
}
