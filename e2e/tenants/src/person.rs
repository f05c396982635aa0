//! People with their own credentials, and what they were shown.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// The longest that anything takes here.
const LIMIT: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_millis(500);

/// The commands and files of a run.
#[derive(Clone)]
pub(crate) struct Place {
    /// The checkout, where commands run.
    pub(crate) root: PathBuf,
    /// Folder with `kubectl` and its plugin.
    pub(crate) tools: PathBuf,
    /// Folder for credentials and logs.
    pub(crate) home: PathBuf,
}

/// Who runs commands, with a kubeconfig.
pub(crate) struct Person {
    name: String,
    kubeconfig: PathBuf,
    place: Place,
    /// All that commands printed for this person.
    pub(crate) seen: String,
}

/// How a command ended, and what it printed.
pub(crate) struct Outcome {
    pub(crate) is_ok: bool,
    /// Without what it printed about errors.
    pub(crate) output: String,
    /// All that it printed.
    pub(crate) text: String,
}

impl Person {
    pub(crate) fn new(name: &str, kubeconfig: &Path, place: &Place) -> Self {
        Self {
            name: name.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            place: place.clone(),
            seen: String::new(),
        }
    }

    /// The person of a service account of a namespace, which is that of the kubeconfig too.
    pub(crate) async fn account(&mut self, name: &str, namespace: &str, account: &str) -> anyhow::Result<Self> {
        let token = self
            .done(&format!("kubectl create token {account} -n {namespace}"))
            .await?;
        let mut config = self.json("kubectl config view --raw -o json").await?;
        let users = config.get_mut("users").and_then(Value::as_array_mut);
        for user in users.context("a kubeconfig without users")? {
            // The certificate of the administrator goes with it.
            *user = json!({ "name": user.get("name"), "user": { "token": token.trim() } });
        }
        let contexts = config.get_mut("contexts").and_then(Value::as_array_mut);
        for context in contexts.context("a kubeconfig without contexts")? {
            if let Some(context) = context.pointer_mut("/context").and_then(Value::as_object_mut) {
                context.insert("namespace".to_owned(), json!(namespace));
            }
        }
        let file = self.place.home.join(format!("{name}.kubeconfig"));
        std::fs::write(&file, config.to_string())?;
        Ok(Self::new(name, &file, &self.place))
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs lines of a shell, with this input.
    pub(crate) async fn run_with(&mut self, lines: &str, input: &str) -> anyhow::Result<Outcome> {
        let Place { root, tools, home } = &self.place;
        let mut child = Command::new("bash")
            .args(["-euo", "pipefail", "-c", lines])
            .current_dir(root)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", tools.display()))
            .env("HOME", home)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting bash")?;
        if let Some(mut to) = child.stdin.take() {
            // A command that reads no input may have ended.
            let _ = to.write_all(input.as_bytes()).await;
        }
        let ended = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
        let ended = ended.with_context(|| format!("{}: `{lines}` does not end", self.name))??;
        let output = String::from_utf8_lossy(&ended.stdout).into_owned();
        let text = format!("{output}{}", String::from_utf8_lossy(&ended.stderr));
        self.seen.push_str(&text);
        Ok(Outcome {
            is_ok: ended.status.success(),
            output,
            text,
        })
    }

    pub(crate) async fn run(&mut self, lines: &str) -> anyhow::Result<Outcome> {
        self.run_with(lines, "").await
    }

    /// Runs lines that must succeed, and returns their output.
    pub(crate) async fn done(&mut self, lines: &str) -> anyhow::Result<String> {
        let outcome = self.run(lines).await?;
        ensure!(outcome.is_ok, "{}: `{lines}` failed: {}", self.name, outcome.text);
        Ok(outcome.output)
    }

    pub(crate) async fn json(&mut self, lines: &str) -> anyhow::Result<Value> {
        let output = self.done(lines).await?;
        serde_json::from_str(&output).with_context(|| format!("{}: `{lines}` prints no JSON: {output}", self.name))
    }

    /// Applies documents.
    pub(crate) async fn apply(&mut self, documents: &[Value]) -> anyhow::Result<()> {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": documents });
        let outcome = self
            .run_with("kubectl apply --server-side -f -", &list.to_string())
            .await?;
        ensure!(outcome.is_ok, "{}: {}", self.name, outcome.text);
        Ok(())
    }

    /// Runs lines that must fail, with these words in what they print.
    pub(crate) async fn refused(&mut self, lines: &str, input: &str, words: &[&str]) -> anyhow::Result<()> {
        let outcome = self.run_with(lines, input).await?;
        let missing: Vec<_> = words.iter().filter(|word| !outcome.text.contains(**word)).collect();
        ensure!(
            !outcome.is_ok && missing.is_empty(),
            "{}: `{lines}` is not refused with {words:?}: {}\n{input}",
            self.name,
            outcome.text
        );
        Ok(())
    }

    /// Repeats lines until their output has the words.
    pub(crate) async fn until(&mut self, lines: &str, words: &str) -> anyhow::Result<()> {
        let end = Instant::now() + LIMIT;
        loop {
            let outcome = self.run(lines).await?;
            if outcome.text.contains(words) {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("{}: `{lines}` never printed {words:?}: {}", self.name, outcome.text);
            }
            sleep(PAUSE).await;
        }
    }
}
