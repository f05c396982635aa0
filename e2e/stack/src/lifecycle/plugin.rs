//! `kubectl metal3` in the hands of a person who may read all but Secrets.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::env::TestEnv;
use super::reader::{self, READS};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;

/// The file of the stack with what the commands printed, which becomes a part of the report.
pub(super) const SHOWN: &str = "kubectl-metal3.txt";
const VIEWER: &str = "viewer";
const ARCHIVE: &str = "metal3-support.tar";
const PAUSED: &str = "baremetalhost.metal3.io/paused";
/// The exit codes of `docs/why.md`.
const READY: i32 = 0;
const BLOCKED: i32 = 4;
const NOT_READ: i32 = 5;

pub(super) fn shows(env: &TestEnv<'_>) -> Proof {
    let plugin = Plugin::new(env)?;
    let cluster = format!("cluster/{CLUSTER}");
    plugin.says(&["why", &cluster], READY, &["waits for nothing"])?;
    let hosts = list(env.stack, NAMESPACE, "baremetalhosts")?;
    let all: Vec<String> = hosts.iter().map(name).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    plugin.says(&["hosts"], READY, &all)?;
    let machines = list(env.stack, NAMESPACE, "metal3machines")?;
    let machines: Vec<String> = machines.iter().map(name).collect();
    let machines: Vec<&str> = machines.iter().map(String::as_str).collect();
    plugin.says(&["tree", CLUSTER], READY, &machines)?;
    plugin.says(&["consumers"], READY, &machines)?;
    let pools = list(env.stack, NAMESPACE, "ippools.ipam.metal3.io")?;
    let pools: Vec<String> = pools.iter().map(name).collect();
    let pools: Vec<&str> = pools.iter().map(String::as_str).collect();
    plugin.says(&["pools"], READY, &pools)?;
    let is_used = |host: &&Value| host["status"]["provisioning"]["state"] == "provisioned";
    let used = hosts.iter().find(is_used).map(name).context("no host is provisioned")?;
    plugin.says(&["timeline", &used], READY, &["inspect", "provision", "done"])?;
    plugin.says(&["top"], READY, &["MEDIAN", "provision"])?;
    plugin.explains_a_pause(&used)?;
    let bytes = plugin.bundle(&machines)?;
    let commands = plugin.write()?;
    Ok(format!("{commands} commands, a bundle of {} KiB", bytes / 1024))
}

struct Plugin<'e, 'a> {
    env: &'e TestEnv<'a>,
    program: String,
    kubeconfig: String,
    /// Each command with its output, as on a terminal.
    shown: RefCell<Vec<String>>,
}

impl<'e, 'a> Plugin<'e, 'a> {
    fn new(env: &'e TestEnv<'a>) -> anyhow::Result<Self> {
        let program = env.program.to_str().context("the name of the program is not text")?;
        Ok(Self {
            env,
            program: program.to_owned(),
            kubeconfig: format!("--kubeconfig={}", viewer(env.stack)?.display()),
            shown: RefCell::default(),
        })
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<(Output, String)> {
        let args = [words, &["--namespace", NAMESPACE, &self.kubeconfig]].concat();
        let output = self.env.stack.output(&self.program, &args, None)?;
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        self.env.no_password_in(&text)?;
        let folder = format!("{}/", self.env.stack.places.state().display());
        let shown = format!("$ kubectl metal3 {}\n{text}", words.join(" ")).replace(&folder, "");
        self.shown.borrow_mut().push(shown);
        Ok((output, text))
    }

    /// Keeps what was printed for the report, and returns the number of commands.
    fn write(&self) -> anyhow::Result<usize> {
        let shown = self.shown.borrow();
        let file = self.env.stack.places.state_file(SHOWN);
        fs::write(&file, shown.join("\n")).with_context(|| format!("writing {}", file.display()))?;
        Ok(shown.len())
    }

    /// Runs a command, and checks its exit code and that it shows these texts.
    fn says(&self, words: &[&str], code: i32, parts: &[&str]) -> anyhow::Result<()> {
        let (output, text) = self.run(words)?;
        ensure!(
            output.status.code() == Some(code),
            "{words:?} ends with {:?}, not {code}: {text}",
            output.status.code()
        );
        for part in parts {
            ensure!(text.contains(part), "{words:?} does not show {part}: {text}");
        }
        Ok(())
    }

    /// A host that a user pauses names the annotation, and is as before without it.
    fn explains_a_pause(&self, host: &str) -> anyhow::Result<()> {
        let object = format!("bmh/{host}");
        let annotate = |annotation: &str| {
            let args = ["--namespace", NAMESPACE, "annotate", "baremetalhost", host, annotation];
            self.env.stack.kubectl(&args).map(drop)
        };
        annotate(&format!("{PAUSED}="))?;
        let paused = self.says(&["why", &object], BLOCKED, &["Paused", PAUSED, "Who acts: user"]);
        annotate(&format!("{PAUSED}-"))?;
        paused?;
        self.says(&["why", &object], READY, &[])
    }

    /// The right that the viewer lacks is named, and no password is in the archive.
    fn bundle(&self, machines: &[&str]) -> anyhow::Result<usize> {
        let file = self.env.stack.places.state().join(ARCHIVE);
        let path = file.to_str().context("the path is not text")?;
        self.says(&["support-bundle", "--file", path], NOT_READ, &["not-read.txt"])?;
        let archive = fs::read(&file).context("there is no archive")?;
        let text = String::from_utf8_lossy(&archive);
        self.env.no_password_in(&text)?;
        ensure!(
            text.contains("you may not list secrets"),
            "the archive does not name the right that is missing"
        );
        for machine in machines {
            let member = format!("objects/{NAMESPACE}/Metal3Machine/{machine}.yaml");
            ensure!(text.contains(&member), "{member} is not in the archive");
        }
        Ok(archive.len())
    }
}

impl TestEnv<'_> {
    fn no_password_in(&self, text: &str) -> anyhow::Result<()> {
        let logins = self.fleet.logins();
        let shown = logins.iter().find(|(_, password)| text.contains(password));
        ensure!(shown.is_none(), "the password of a login is shown");
        Ok(())
    }
}

/// The kubeconfig of an account that may read what is not secret.
fn viewer(stack: &Stack) -> anyhow::Result<PathBuf> {
    let groups = [
        "cluster.x-k8s.io",
        "controlplane.cluster.x-k8s.io",
        "bootstrap.cluster.x-k8s.io",
        "infrastructure.cluster.x-k8s.io",
        "ipam.cluster.x-k8s.io",
        "ipam.metal3.io",
        "metal3.io",
    ];
    let rules = json!([
        { "apiGroups": groups, "resources": ["*"], "verbs": READS },
        { "apiGroups": [""], "resources": ["events"], "verbs": READS },
    ]);
    reader::kubeconfig(stack, VIEWER, &rules)
}
