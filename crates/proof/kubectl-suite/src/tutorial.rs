//! Runs the commands of a page, and compares what they print with the page, or writes it there.
//!
//! The commands are in blocks of the language `console`, each after a prompt. `make demo` goes on in the background, as in another
//! terminal, until the last command has ended. Names that are generated, times and the order of rows are not compared. The folder of
//! the program is the one that `make demo` prints, as for a reader.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use regex::Regex;

use crate::normal::normal;

const FENCE: &str = "```";
const LANGUAGE: &str = "```console";
const PROMPT: &str = "$ ";
/// The command that goes on.
const DEMO: &str = "make demo";
/// What makes the program a command, and how the page shows it: the folder differs from machine to machine.
const PROGRAM: &str = "export PATH=";
const SHOWN_PROGRAM: &str = "export PATH=…:$PATH";
/// The last line before it only waits.
const STARTED: &str = "Ctrl-C";

/// A command that only reads.
const READ: &str = "kubectl get ";
/// How often such a command runs again before its output is another one than that of the page.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// A line of the page, or a command with its output.
#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Command { line: String, output: Vec<String> },
}

/// Where the commands run.
pub(crate) struct Terminal {
    /// Folders of programs, before those of the system.
    pub(crate) programs: Vec<PathBuf>,
    /// The user's home, a folder of its own.
    pub(crate) home: PathBuf,
    /// Variables by which `make demo` finds the compiler and the built program.
    pub(crate) variables: Vec<(String, PathBuf)>,
}

/// Runs the page; returns whether it holds, or writes it.
pub(crate) fn run(page: &Path, terminal: &Terminal, write: bool) -> Result<bool> {
    let text = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let (mut demo, mut exports, mut found, mut count) = (None, String::new(), Vec::new(), 0_usize);
    let mut program = None;
    let mut parts = parts(&text);
    for part in &mut parts {
        let Part::Command { line, output } = part else { continue };
        count = count.saturating_add(1);
        println!("{PROMPT}{line}");
        let printed = if line.starts_with(DEMO) {
            let (child, mut printed) = terminal.start(line)?;
            demo = Some(child);
            program = hide_program(&mut printed);
            printed
        } else if line.starts_with("export ") {
            let shown = line == SHOWN_PROGRAM;
            let line = program.as_ref().filter(|_| shown).unwrap_or(line);
            exports += &format!("{line}\n");
            Vec::new()
        } else {
            terminal.settled(&format!("{exports}{line}"), line, output)?
        };
        if compared(&printed) != compared(output) {
            found.push(format!(
                "{PROMPT}{line}\n{}\n  instead of\n{}",
                printed.join("\n"),
                output.join("\n")
            ));
        }
        *output = printed;
    }
    drop(demo);
    if write {
        std::fs::write(page, whole(&parts))?;
        println!("{count} commands, written");
        return Ok(true);
    }
    for difference in &found {
        println!("{difference}\n");
    }
    println!("{count} commands, {} print something else than the page", found.len());
    Ok(found.is_empty())
}

/// A process that ends, with those that it started, when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        end_group(&self.0);
        drop(self.0.wait());
    }
}

impl Terminal {
    fn bash(&self, line: &str) -> Result<Command> {
        let mut command = Command::new("bash");
        command
            .arg("-c")
            .arg(line)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("CACHE", self.home.join(".cache/metal3-rs"))
            .env("PATH", std::env::join_paths(&self.programs)?)
            .env("HOME", &self.home)
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        // Those of the user, and of the command that runs this one.
        for name in ["KUBECONFIG", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"] {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn output(&self, line: &str) -> Result<Vec<String>> {
        let done = self
            .bash(&format!("exec 2>&1\n{line}"))?
            .output()
            .context("running bash")?;
        let text = String::from_utf8_lossy(&done.stdout);
        let lines = text.lines().filter(|line| !is_log(line));
        Ok(lines.map(|line| line.trim_end().to_owned()).collect())
    }

    /// What a command prints. A table of objects is printed again until it is that of the page, because the next thing that happens to
    /// an object may be a moment away.
    fn settled(&self, script: &str, line: &str, expected: &[String]) -> Result<Vec<String>> {
        let mut printed = self.output(script)?;
        for _ in 0..ATTEMPTS {
            if !line.starts_with(READ) || compared(&printed) == compared(expected) {
                break;
            }
            std::thread::sleep(PAUSE);
            printed = self.output(script)?;
        }
        Ok(printed)
    }

    /// Starts a command that goes on, and returns what it printed first.
    fn start(&self, line: &str) -> Result<(Running, Vec<String>)> {
        let mut command = self.bash(line)?;
        let mut child = command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let running = Running(child);
        let mut printed = Vec::new();
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            printed.push(line.trim_end().to_owned());
            if line.starts_with(STARTED) {
                return Ok((running, printed));
            }
        }
        bail!("{line}: ended after\n{}", printed.join("\n"))
    }
}

/// Shows the command with the folder of the program as the page does, and returns it.
fn hide_program(printed: &mut [String]) -> Option<String> {
    let mut found = printed
        .iter_mut()
        .filter_map(|line| line.find(PROGRAM).map(|at| (line, at)));
    let (line, at) = found.next()?;
    let command = line.split_off(at);
    line.push_str(SHOWN_PROGRAM);
    Some(command)
}

fn parts(page: &str) -> Vec<Part> {
    let (mut parts, mut inside) = (Vec::new(), false);
    for line in page.lines() {
        let is_fence = line.starts_with(FENCE);
        if is_fence {
            inside = line == LANGUAGE;
        }
        match parts.last_mut() {
            _ if inside && line.starts_with(PROMPT) => parts.push(Part::Command {
                line: line.trim_start_matches(PROMPT).to_owned(),
                output: Vec::new(),
            }),
            Some(Part::Command { line: command, .. }) if command.ends_with('\\') => {
                *command += &format!("\n{line}");
            }
            Some(Part::Command { output, .. }) if inside && !is_fence => output.push(line.to_owned()),
            _ => parts.push(Part::Text(line.to_owned())),
        }
    }
    parts
}

fn whole(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(line) => format!("{line}\n"),
        Part::Command { line, output } => {
            let lines = std::iter::once(format!("{PROMPT}{line}")).chain(output.iter().cloned());
            lines.map(|line| format!("{line}\n")).collect()
        }
    };
    parts.iter().map(text).collect()
}

/// Names with a generated end, numbers of hosts, addresses of machines, and durations.
static VARIABLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = r"\b(demo|pods)(-[a-z]+)*(-[0-9a-f]{8})?-[bcdfghjklmnpqrstvwxz24-9]{5}\b|\bhost-\d+\b|(192\.0\.2|198\.51\.100|10\.0\.0)\.\d+|\b\d+(\.\d+)? ?s\b";
    Regex::new(names).ok()
});

/// Whether a line is of the log of the client library, about connections.
fn is_log(line: &str) -> bool {
    let (start, rest) = line.split_at_checked(5).unwrap_or_default();
    start.starts_with(['I', 'W', 'E']) && start.chars().skip(1).all(|c| c.is_ascii_digit()) && rest.starts_with(' ')
}

/// What is compared of an output: the rows in any order, without what differs between runs.
fn compared(output: &[String]) -> Vec<String> {
    let text = normal(&output.join("\n"));
    let text = match &*VARIABLE {
        Some(variable) => variable.replace_all(&text, "NAME").into_owned(),
        None => text,
    };
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(words).collect();
    lines.sort();
    lines
}

/// Interrupts a process and those of its group.
fn end_group(child: &Child) {
    drop(
        Command::new("kill")
            .args(["-INT", "--", &format!("-{}", child.id())])
            .status(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n\n```console\n$ make a\nb\n$ c \\\n  d\n```\n\n```sh\n$ no\n```\n";

    #[test]
    fn a_page_is_read_and_written_unchanged() {
        let parts = parts(PAGE);
        let commands = parts.iter().filter(|part| matches!(part, Part::Command { .. })).count();
        assert_eq!((commands, whole(&parts)), (2, PAGE.to_owned()));
    }

    #[test]
    fn folder_of_the_program_is_taken_from_the_output_and_not_compared() {
        let mut printed = [
            "kubeconfig  export KUBECONFIG=~/k",
            "program     export PATH=/t/debug:$PATH",
        ]
        .map(str::to_owned);
        assert_eq!(
            hide_program(&mut printed).as_deref(),
            Some("export PATH=/t/debug:$PATH")
        );
        assert_eq!(printed[1], "program     export PATH=…:$PATH");
        assert_eq!(hide_program(&mut []), None);
    }

    #[test]
    fn lines_of_the_log_are_left_out() {
        for (line, expected) in [
            ("I1129 18:48:25.717715 x", true),
            ("E1129", false),
            ("Image: x", false),
            ("", false),
        ] {
            assert_eq!(is_log(line), expected, "{line}");
        }
    }

    #[test]
    fn generated_names_and_the_order_of_rows_are_not_compared() {
        let lines = |lines: &[&str]| compared(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            lines(&["demo-363675ec-46j5f   Running   5s", "host-2   available"]),
            lines(&["host-3   available", "demo-0a3675ec-zzj5f  Running  12s"]),
        );
        assert_ne!(lines(&["host-2   available"]), lines(&["host-2   provisioned"]));
    }
}
