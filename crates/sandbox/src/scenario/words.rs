//! Steps of scripts in words.

use std::time::Duration;

use metal3_scenario::{Expectation, Step};

use crate::world::host_name;

/// One line for a step.
pub(super) fn describe(step: &Step) -> String {
    match step {
        Step::Apply(apply) => {
            let with: Vec<String> = apply
                .with
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("apply e2e/scenarios/{} with {}", apply.file, with.join(", "))
        }
        Step::Published(file) => format!("apply the published {file}"),
        Step::Change { object, patch } => format!("patch {object} with {patch}"),
        Step::Delete(object) => format!("delete {object}"),
        Step::DeleteMachineOf(host) => format!("delete the Machine of {}", host_name(*host)),
        Step::Wait(expectation) => format!("wait for {}", expected(expectation)),
        Step::Check(expectation) => format!("check for {}", expected(expectation)),
        Step::Holds { expectation, during } => {
            format!("let {} pass with {}", span(during.0), expected(expectation))
        }
        Step::Why(cause) => {
            let name = cause.name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
            format!(
                "ask why {}{name} waits: the answer is {} of {}",
                cause.kind, cause.reason, cause.at
            )
        }
        Step::Nodes(nodes) => format!("check for {} Nodes of the cluster {}", nodes.count, nodes.cluster),
        Step::Hosts(count) => format!("add {count} hosts"),
        Step::Fault { host, has } => {
            let has: Vec<String> = has.iter().map(|fault| fault.to_string().replace('"', "")).collect();
            format!("break the machine of {}: {}", host_name(*host), has.join(", "))
        }
        Step::Mend(host) => format!("repair the machine of {}", host_name(*host)),
        Step::IronicDown(time) => format!("stop Ironic for {}", span(time.0)),
        Step::Restart => "kill all controllers and start them again".to_owned(),
        Step::Quiet(time) => format!("let {} pass", span(time.0)),
        Step::Written(times) => format!("check that images were written {times} times in all"),
    }
}

fn expected(expectation: &Expectation) -> String {
    let count = expectation.count.unwrap_or(1);
    let name = expectation.name.as_ref().map(|name| format!("/{name}"));
    let cluster = expectation.cluster.as_ref().map(|cluster| format!(" of {cluster}"));
    let fields = expectation.says.iter().map(|(at, value)| {
        let field = at.trim_start_matches('/').replace("status/", "").replace('/', ".");
        match value.as_str() {
            Some("") => format!("no {field}"),
            Some(text) => format!("{field} {text}"),
            None => format!("{field} {value}"),
        }
    });
    let conditions = expectation
        .condition
        .iter()
        .map(|(aspect, status)| format!("{aspect} {status}"));
    let mentions = expectation.mentions.iter().map(|text| format!("{text:?} in it"));
    let all: Vec<String> = fields.chain(conditions).chain(mentions).collect();
    let with = if all.is_empty() {
        String::new()
    } else {
        format!(" with {}", all.join(", "))
    };
    format!(
        "{count} {}{}{}{with}",
        expectation.kind,
        name.unwrap_or_default(),
        cluster.unwrap_or_default()
    )
}

fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds.is_multiple_of(3_600) => format!("{} h", seconds.div_euclid(3_600)),
        seconds if seconds.is_multiple_of(60) => format!("{} min", seconds.div_euclid(60)),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metal3_scenario::Scenario;

    #[test]
    fn steps_are_sentences() {
        let text = r#"
about: x
hosts: 1
steps:
  - apply: { file: objects/cluster.yaml, with: { CLUSTER_NAME: edge } }
  - fault: { host: 1, has: [wrong-password, { fails-at: 3 }] }
  - wait: { kind: BareMetalHost, count: 2, where: { /status/provisioning/state: available, /status/errorMessage: "" } }
  - check: { kind: Machine, name: a, cluster: edge, condition: { Ready: "True" }, mentions: [x] }
  - holds: { wish: { kind: Machine, count: 0 }, during: 90s }
  - why: { kind: Machine, at: BareMetalHost, reason: ProvisioningError }
  - ironic-down: 20m
  - quiet: 6h
  - delete-machine-of: 3
"#;
        let scenario = Scenario::read(text).unwrap();
        let words: Vec<String> = scenario.steps.iter().map(describe).collect();
        assert_eq!(
            words,
            [
                "apply e2e/scenarios/objects/cluster.yaml with CLUSTER_NAME=edge",
                "break the machine of host-1: wrong-password, {fails-at:3}",
                "wait for 2 BareMetalHost with no errorMessage, provisioning.state available",
                "check for 1 Machine/a of edge with Ready True, \"x\" in it",
                "let 90 s pass with 0 Machine",
                "ask why Machine waits: the answer is ProvisioningError of BareMetalHost",
                "stop Ironic for 20 min",
                "let 6 h pass",
                "delete the Machine of host-3",
            ]
        );
    }
}
