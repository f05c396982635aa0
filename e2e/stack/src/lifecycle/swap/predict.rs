//! `capm3 preflight` before a switch, and what it names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::first::First;
use super::plain::Plain;
use super::products::Family;
use super::release::GoRelease;
use crate::claims::stack::Stack;
use crate::lifecycle::fleet::Fleet;
use crate::lifecycle::reader::{self, READS};
use crate::products::machines::NAMESPACE;

/// The account of the person who looks. It may read everything, and Secrets too, because the controllers do; it may write nothing.
const ACCOUNT: &str = "preflight";

pub(super) struct Prediction {
    report: Value,
    command: String,
    code: i32,
}

/// Runs the command as a user does. A decision other than *go* is part of the result.
pub(super) fn run(
    stack: &Stack,
    fleet: &Fleet,
    (program, to): (&Path, Family),
    release: &GoRelease,
) -> anyhow::Result<Prediction> {
    let rules = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": READS }]);
    let kubeconfig = format!("--kubeconfig={}", reader::kubeconfig(stack, ACCOUNT, &rules)?.display());
    let to_series = format!("--to={}", release.series());
    let way: &[&str] = match to {
        Family::Ours => &[],
        Family::Go => &["--back", &to_series],
    };
    let program = program.to_str().context("the program's name is not text")?;
    let [endpoint, login, authority] = ironic(stack, fleet)?;
    let args = [
        &[&endpoint, &login, &authority, program, "preflight"][..],
        way,
        &[&kubeconfig, "--output=json"],
    ]
    .concat();
    let output = stack.output("env", &args, None)?;
    let code = output.status.code().context("preflight was killed")?;
    let Ok(report) = serde_json::from_slice(&output.stdout) else {
        bail!("preflight: {code}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let command = [&["capm3", "preflight"][..], way].concat().join(" ");
    Ok(Prediction { report, command, code })
}

/// The variables that say where Ironic is, for the dry run.
fn ironic(stack: &Stack, fleet: &Fleet) -> anyhow::Result<[String; 3]> {
    let root = stack.places.state().join("preflight-auth");
    let folder = root.join("ironic");
    fs::create_dir_all(&folder)?;
    let [(username, password), _] = fleet.logins();
    for (name, content) in [("username", username), ("password", password)] {
        fs::write(folder.join(name), content).with_context(|| format!("writing the {name} of Ironic"))?;
    }
    Ok([
        format!("IRONIC_ENDPOINT={}", fleet.ironic_url()),
        format!("METAL3_AUTH_ROOT_DIR={}", root.display()),
        format!("IRONIC_CACERT_FILE={}", fleet.authority.display()),
    ])
}

impl Prediction {
    /// What the dry run saw; none of the way back.
    pub(super) fn first(&self) -> Option<First> {
        First::of(&self.report)
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.report["findings"].as_array().into_iter().flatten()
    }

    /// The hosts that it expects work on, without their namespace. What else it says of a host announces no order.
    pub(super) fn hosts(&self) -> BTreeSet<String> {
        const OF_WORK: &str = "either manager";
        let prefix = format!("BareMetalHost {NAMESPACE}/");
        let is_of_work = |finding: &&Value| finding["what"].as_str().is_some_and(|what| what.contains(OF_WORK));
        let objects = self.findings().filter(is_of_work);
        objects
            .filter_map(|finding| finding["object"].as_str())
            .filter_map(|object| object.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect()
    }

    /// What it refuses to switch with, or waits for.
    pub(super) fn stops(&self) -> BTreeSet<String> {
        let stopping = self.findings().filter(|finding| finding["decision"] != "go");
        let objects = stopping.filter_map(|finding| finding["object"].as_str());
        objects.map(str::to_owned).collect()
    }

    /// Whether it names the command that works, in the finding about the object that Kubernetes refuses: others may name a
    /// command that begins the same way.
    pub(super) fn names(&self, plain: &Plain) -> bool {
        let text = |finding: &Value, member: &str| finding[member].as_str().unwrap_or_default().to_owned();
        self.findings()
            .filter(|finding| text(finding, "object").starts_with(plain.object))
            .any(|finding| text(finding, "cure").contains(plain.works))
    }

    /// Its decision, a line for each kind of finding, and what it could not read.
    pub(super) fn text(&self) -> String {
        let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
        for finding in self.findings() {
            let text = |member: &str| finding[member].as_str().unwrap_or_default();
            let what = match text("cure") {
                "" => text("what").to_owned(),
                cure => format!("{}: {cure}", text("what")),
            };
            let line = format!("{}: {what}", text("decision"));
            let object = text("object").trim_start_matches("BareMetalHost ");
            match kinds.iter_mut().find(|(known, _)| *known == line) {
                Some((_, objects)) => objects.push(object),
                None => kinds.push((line, vec![object])),
            }
        }
        let decision = self.report["decision"].as_str().unwrap_or_default();
        let mut lines = vec![format!("$ {}\n{decision} (exit code {})", self.command, self.code)];
        for (line, objects) in kinds {
            let named = match objects.as_slice() {
                [] | [_] | [_, _] | [_, _, _] => objects.join(", "),
                [first, second, ..] => format!("{first}, {second} and {} more", objects.len() - 2),
            };
            lines.push(format!("{line} ({named})"));
        }
        for one in self.report["notRead"].as_array().into_iter().flatten() {
            let text = |member: &str| one[member].as_str().unwrap_or_default();
            lines.push(format!("not read: {}, because {}", text("what"), text("why")));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::plain::PLAIN;
    use super::*;

    #[test]
    fn prediction_names_hosts_with_work_and_folds_equal_findings() {
        let finding =
            |(object, what): (&str, &str)| json!({"decision": "go", "object": object, "what": what, "cure": "wait"});
        let of_work = "is new; either manager continues it";
        let findings = [
            ("BareMetalHost metal/a", of_work),
            ("BareMetalHost metal/b", of_work),
            ("BareMetalHost metal/c", "is sent its login by Ironic"),
            ("Deployment x/y", of_work),
        ];
        let prediction = Prediction {
            report: json!({"decision": "go", "findings": findings.map(finding), "notRead": [{"what": "the release", "why": "it has no tag"}]}),
            command: "capm3 preflight".to_owned(),
            code: 0,
        };
        assert_eq!(prediction.hosts(), ["a", "b"].map(str::to_owned).into());
        let text = prediction.text();
        assert!(
            text.contains("go: is new; either manager continues it: wait (metal/a, metal/b, Deployment x/y)\n"),
            "{text}"
        );
        assert!(
            text.ends_with("\nnot read: the release, because it has no tag"),
            "{text}"
        );
    }

    #[test]
    fn command_is_named_only_by_the_finding_about_the_object_that_is_refused() {
        const HOSTS: &str = "baremetal-operator-validating-webhook-configuration";
        let cure = format!("kubectl delete --ignore-not-found validatingwebhookconfiguration {HOSTS}");
        let named_by = |object: &str| {
            let finding = json!({"decision": "go", "object": object, "what": "", "cure": cure});
            let prediction = Prediction {
                report: json!({"findings": [finding]}),
                command: String::new(),
                code: 0,
            };
            let [_, _, webhooks] = &PLAIN;
            prediction.names(webhooks)
        };
        assert!(named_by(&format!("ValidatingWebhookConfiguration {HOSTS}")));
        assert!(
            !named_by("BareMetalHost metal/a"),
            "the command is part of another step"
        );
    }
}
