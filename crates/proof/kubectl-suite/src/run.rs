//! Runs the calls of a script against a server.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use metal3_domain::clock::Clock;
use serde_json::{Value, json};

use crate::normal::normal;
use crate::recorded::session;
use crate::request::Sender;
use crate::script::{Call, REQUEST, Script, words};

/// The longest call.
const LIMIT: Duration = Duration::from_secs(60);

/// Where the programs are, and what they find.
pub(crate) struct Place {
    /// Folders of the programs.
    pub(crate) programs: Vec<PathBuf>,
    /// A folder for files of the programs.
    pub(crate) home: PathBuf,
    /// The kubeconfig of the server.
    pub(crate) kubeconfig: Value,
    /// Sends requests to the server.
    pub(crate) sender: Sender,
    /// The clock of the limit of a call.
    pub(crate) clock: Arc<dyn Clock>,
}

/// The command line and the output of each call.
pub(crate) type Outputs = Vec<(String, String)>;

impl Place {
    /// Runs a script in a new namespace with its name.
    pub(crate) fn run(&self, script: &Script) -> Result<Outputs> {
        let home = self.home.join(&script.name);
        std::fs::create_dir_all(&home).with_context(|| format!("creating {}", home.display()))?;
        std::fs::write(home.join("kubeconfig"), self.in_namespace(&script.name).to_string())?;
        let created = self.finish(
            &home,
            &words(&format!("kubectl create namespace {}", script.name))?,
            &Call::default(),
        )?;
        ensure!(created.1.contains("created"), "{}: {}", script.name, created.2);
        let mut outputs = Outputs::new();
        for call in &script.calls {
            let (code, stdout, stderr) = self
                .finish(&home, &words(&call.run)?, call)
                .with_context(|| format!("{}: {}", script.name, call.run))?;
            outputs.push((call.run.clone(), session(code, &normal(&stdout), &normal(&stderr))));
        }
        Ok(outputs)
    }

    /// Reads all documents of discovery once, so that they are not read by each script.
    pub(crate) fn warm(&self) -> Result<()> {
        std::fs::create_dir_all(&self.home)?;
        std::fs::write(self.home.join("kubeconfig"), self.kubeconfig.to_string())?;
        let line = words("kubectl api-resources -o name")?;
        let (code, _, stderr) = self.finish(&self.home, &line, &Call::default())?;
        ensure!(code == Some(0), "kubectl api-resources: {stderr}");
        Ok(())
    }

    fn in_namespace(&self, namespace: &str) -> Value {
        let mut kubeconfig = self.kubeconfig.clone();
        let contexts = kubeconfig.get_mut("contexts").and_then(Value::as_array_mut);
        for context in contexts.into_iter().flatten() {
            if let Some(Value::Object(context)) = context.get_mut("context") {
                context.insert("namespace".to_owned(), json!(namespace));
            }
        }
        kubeconfig
    }

    fn command(&self, home: &Path, words: &[String], call: &Call) -> Result<Command> {
        let (program, arguments) = words.split_first().context("an empty command line")?;
        let program = self
            .programs
            .iter()
            .map(|folder| folder.join(program))
            .find(|path| path.is_file());
        let mut command = Command::new(program.with_context(|| format!("{} is not built", words.join(" ")))?);
        let folders = self.programs.iter().cloned().chain(["/usr/bin".into(), "/bin".into()]);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::join_paths(folders)?)
            .env("HOME", home)
            .env("TZ", "UTC")
            .env("KUBECONFIG", home.join("kubeconfig"))
            .env("KUBECACHEDIR", self.home.join("cache"))
            .env("KUBE_EDITOR", format!("sed -i -e '{}'", call.edit))
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs a command line to its end, or until it printed the lines that the call wants.
    fn finish(&self, home: &Path, words: &[String], call: &Call) -> Result<(Option<i32>, String, String)> {
        if words.first().is_some_and(|word| word == REQUEST) {
            let meanwhile = || self.meanwhile(home, call);
            return Ok((Some(0), self.sender.run(words, call, meanwhile)?, String::new()));
        }
        let mut child = self.command(home, words, call)?.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read it closes the pipe.
            drop(stdin.write_all(call.input.as_bytes()));
        }
        let (sender, lines) = channel();
        let reader = child
            .stdout
            .take()
            .map(|stdout| spawn(move || send_lines(stdout, &sender)));
        let errors = child.stderr.take().map(|mut stderr| {
            spawn(move || {
                let mut text = String::new();
                drop(stderr.read_to_string(&mut text));
                text
            })
        });
        let (status, stdout) = self.follow(home, &mut child, call, &lines)?;
        joined(reader);
        let stderr = joined(errors);
        // A program that was ended on purpose has no exit code of interest.
        let code = if call.lines > 0 { Some(0) } else { status.code() };
        Ok((code, stdout, stderr))
    }

    /// Runs what a call wants after its first line.
    fn meanwhile(&self, home: &Path, call: &Call) -> Result<()> {
        if !call.meanwhile.is_empty() {
            self.finish(home, &words(&call.meanwhile)?, &Call::default())?;
        }
        Ok(())
    }

    fn follow(
        &self,
        home: &Path,
        child: &mut Child,
        call: &Call,
        lines: &Receiver<String>,
    ) -> Result<(ExitStatus, String)> {
        let (begun, mut stdout, mut count) = (self.clock.monotonic(), String::new(), 0_usize);
        loop {
            let left = LIMIT.saturating_sub(self.clock.monotonic().since(begun));
            match lines.recv_timeout(left) {
                Ok(line) => {
                    stdout += &line;
                    count = count.saturating_add(1);
                    if count == 1 {
                        self.meanwhile(home, call)?;
                    }
                    if call.lines > 0 && count >= call.lines {
                        child.kill()?;
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    child.kill()?;
                    child.wait()?;
                    anyhow::bail!("did not end within {} s; it printed:\n{stdout}", LIMIT.as_secs());
                }
            }
        }
        Ok((child.wait()?, stdout))
    }
}

/// Sends each line until the output ends, or the receiver is gone.
fn send_lines(output: impl Read, to: &mpsc::Sender<String>) -> String {
    let mut reader = BufReader::new(output);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if to.send(std::mem::take(&mut line)).is_err() {
            break;
        }
    }
    String::new()
}

fn joined(thread: Option<JoinHandle<String>>) -> String {
    thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
}
