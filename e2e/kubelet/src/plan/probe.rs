//! Probes as a state machine from outcomes to health. The I/O is elsewhere.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Intervals and thresholds of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) initial_delay: Duration,
    pub(crate) period: Duration,
    pub(crate) timeout: Duration,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    Http {
        secure: bool,
        host: Option<String>,
        port: u16,
        path: String,
        headers: Vec<(String, String)>,
    },
    Tcp {
        host: Option<String>,
        port: u16,
    },
    Exec {
        command: Vec<String>,
    },
}

impl Schedule {
    pub(crate) fn of(probe: &Probe) -> Self {
        let seconds = |value: Option<i32>, default: u64| {
            Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
        };
        let count = |value: Option<i32>, default: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| *value > 0)
                .unwrap_or(default)
        };
        Self {
            initial_delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds.filter(|period| *period > 0), 10),
            timeout: seconds(probe.timeout_seconds.filter(|timeout| *timeout > 0), 1),
            successes: count(probe.success_threshold, 1),
            failures: count(probe.failure_threshold, 3),
        }
    }
}

/// The action of a probe, or why it is unsupported.
pub(crate) fn check(probe: &Probe, container: &Container) -> Result<Check, String> {
    if let Some(get) = &probe.http_get {
        let headers = get
            .http_headers
            .iter()
            .flatten()
            .map(|header| (header.name.clone(), header.value.clone()));
        return Ok(Check::Http {
            secure: get.scheme.as_deref() == Some("HTTPS"),
            host: get.host.clone(),
            port: port(&get.port, container)?,
            path: get
                .path
                .clone()
                .filter(|path| !path.is_empty())
                .unwrap_or_else(|| "/".to_owned()),
            headers: headers.collect(),
        });
    }
    if let Some(socket) = &probe.tcp_socket {
        return Ok(Check::Tcp {
            host: socket.host.clone(),
            port: port(&socket.port, container)?,
        });
    }
    if let Some(exec) = &probe.exec {
        return Ok(Check::Exec {
            command: exec.command.clone().unwrap_or_default(),
        });
    }
    Err("a probe that is neither httpGet, tcpSocket nor exec".to_owned())
}

fn port(wanted: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match wanted {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let named = container
                .ports
                .iter()
                .flatten()
                .find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    let number = number
        .and_then(|number| u16::try_from(number).ok())
        .filter(|number| *number > 0);
    number.ok_or_else(|| format!("container {:?} has no port {wanted:?}", container.name))
}

/// The health according to the outcomes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Healthy,
    Unhealthy,
}

/// Counts consecutive equal outcomes.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    successes: u32,
    failures: u32,
    health: Option<Health>,
}

impl Counter {
    /// Records an outcome; returns a change of health.
    pub(crate) fn observe(&mut self, success: bool, schedule: &Schedule) -> Option<Health> {
        if success {
            self.successes = self.successes.saturating_add(1);
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
            self.successes = 0;
        }
        let health = match success {
            true if self.successes >= schedule.successes => Health::Healthy,
            false if self.failures >= schedule.failures => Health::Unhealthy,
            _ => return None,
        };
        let changed = self.health != Some(health);
        self.health = Some(health);
        changed.then_some(health)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::container;
    use super::*;

    fn probe(value: Value) -> Probe {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn thresholds_decide_when_health_changes() {
        use Health::{Healthy, Unhealthy};
        let schedule = Schedule::of(&probe(json!({"successThreshold": 2, "failureThreshold": 3})));
        let mut counter = Counter::default();
        let rows = [
            (true, None),
            (true, Some(Healthy)),
            (true, None),
            (false, None),
            (false, None),
            (true, None), // the run of failures is broken
            (false, None),
            (false, None),
            (false, Some(Unhealthy)),
            (false, None),
            (true, None),
            (true, Some(Healthy)),
        ];
        for (step, (success, health)) in rows.into_iter().enumerate() {
            assert_eq!(counter.observe(success, &schedule), health, "step {step}");
        }
    }

    #[test]
    fn absent_numbers_have_the_defaults_of_the_api() {
        let schedule = Schedule::of(&Probe::default());
        assert_eq!((schedule.period.as_secs(), schedule.timeout.as_secs()), (10, 1));
        assert_eq!(
            (schedule.successes, schedule.failures, schedule.initial_delay.as_secs()),
            (1, 3, 0)
        );
    }

    #[test]
    fn ports_are_found_by_name_and_by_number() {
        let container = container(json!({"name": "a", "ports": [{"name": "health", "containerPort": 9440}]}));
        let table = [
            (json!({"httpGet": {"port": "health", "path": "/healthz"}}), Ok(9440)),
            (json!({"httpGet": {"port": 81, "scheme": "HTTPS"}}), Ok(81)),
            (json!({"tcpSocket": {"port": "82"}}), Ok(82)),
            (json!({"tcpSocket": {"port": "none"}}), Err(())),
            (json!({"tcpSocket": {"port": 0}}), Err(())),
            (json!({"tcpSocket": {"port": 70000}}), Err(())),
            (json!({"grpc": {"port": 1}}), Err(())),
        ];
        for (value, port) in table {
            let found = check(&probe(value.clone()), &container)
                .map_err(drop)
                .map(|check| match check {
                    Check::Http { port, .. } | Check::Tcp { port, .. } => port,
                    Check::Exec { .. } => 0,
                });
            assert_eq!(found, port, "{value}");
        }
    }
}
