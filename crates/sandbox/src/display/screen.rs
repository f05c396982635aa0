//! The picture of a terminal: drawn on its second screen, so that the first one is as it was afterwards.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::snapshot::Snapshot;

/// Switches to the second screen without a cursor, where long lines are cut.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Back to the first screen.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// To the first line.
const HOME: &str = "\x1b[H";
/// Deletes the rest of the line, and of the screen.
const END_OF_LINE: &str = "\x1b[K\r\n";
const END_OF_SCREEN: &str = "\x1b[K\x1b[J";
/// Lines that stay above the picture.
const SAID: usize = 12;
/// Hosts and machines that are shown.
const ROWS: usize = 12;
/// Causes that are shown.
const WAITS: usize = 5;
/// Height of a terminal that does not say its own.
const HEIGHT: usize = 24;

/// A terminal in use. Dropping it gives the first screen back.
pub(super) struct Screen {
    title: String,
    said: Vec<String>,
    height: usize,
}

impl Screen {
    pub(super) fn new(title: &str) -> Self {
        write(ENTER);
        Self {
            title: title.to_owned(),
            said: Vec::new(),
            height: height().unwrap_or(HEIGHT),
        }
    }

    pub(super) fn say(&mut self, line: &str) {
        self.said.extend(line.lines().map(str::to_owned));
        let old = self.said.len().saturating_sub(SAID);
        self.said.drain(..old);
    }

    pub(super) fn draw(&self, snapshot: &Snapshot, waits: &[String], elapsed: Duration) {
        let lines = picture((&self.title, elapsed), &self.said, (snapshot, waits), self.height);
        let mut text = HOME.to_owned();
        text.push_str(&lines.join(END_OF_LINE));
        text.push_str(END_OF_SCREEN);
        write(&text);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(LEAVE);
    }
}

/// A terminal that is gone is no reason to end.
fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// The rows of the terminal, as `stty` of every Unix says them.
fn height() -> Option<usize> {
    let mut command = Command::new("stty");
    let output = command
        .arg("size")
        .stdin(Stdio::inherit())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().next()?.parse().ok().filter(|rows| *rows > 0)
}

/// The lines of the picture, at most as many as the terminal has.
fn picture(
    (title, elapsed): (&str, Duration),
    said: &[String],
    (snapshot, waits): (&Snapshot, &[String]),
    height: usize,
) -> Vec<String> {
    let mut lines = vec![format!("{title}   {:.1} s", elapsed.as_secs_f64())];
    lines.extend(said.iter().cloned());
    lines.push(String::new());
    let rows: Vec<String> = snapshot.rows().into_iter().map(|(.., row)| row).collect();
    lines.extend(first("", &rows, ROWS));
    lines.push(String::new());
    let end = match waits {
        [] => vec!["nothing is waited for".to_owned()],
        waits => first("waits for  ", waits, WAITS),
    };
    let trees: Vec<String> = snapshot.trees().lines().map(str::to_owned).collect();
    // With the empty line below it.
    let left = height
        .saturating_sub(lines.len())
        .saturating_sub(end.len())
        .saturating_sub(1);
    if left > 0 && !trees.is_empty() {
        let is_cut = trees.len() > left;
        lines.extend(
            trees
                .into_iter()
                .take(if is_cut { left.saturating_sub(1) } else { left }),
        );
        lines.extend(is_cut.then(|| "...".to_owned()));
        lines.push(String::new());
    }
    lines.extend(end);
    lines.truncate(height);
    lines
}

/// The first lines, and how many more there are.
fn first(before: &str, all: &[String], most: usize) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(most).map(|line| format!("{before}{line}")).collect();
    let more = all.len().saturating_sub(most);
    if more > 0 {
        let mut line = before.to_owned();
        let _ = write!(line, "and {more} more");
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use metal3_sim_capi::view::Object;
    use metal3_sim_capi::watch::WatchEvent;
    use serde_json::json;

    use super::*;

    #[test]
    fn picture_has_time_and_what_was_said_and_is_bounded() {
        let said = ["step 1".to_owned()];
        let lines = |height| {
            picture(
                ("demo", Duration::from_millis(1_250)),
                &said,
                (&Snapshot::default(), &[]),
                height,
            )
        };
        assert_eq!(lines(24), ["demo   1.2 s", "step 1", "", "", "nothing is waited for"]);
        assert_eq!(lines(2), ["demo   1.2 s", "step 1"]);
        let many: Vec<String> = (0..9).map(|number| format!("{number}")).collect();
        assert_eq!(first("- ", &many, 2), ["- 0", "- 1", "- and 7 more"]);
    }

    #[test]
    fn tree_is_cut_to_the_height_of_the_terminal() {
        let mut snapshot = Snapshot::default();
        for (kind, name) in [
            ("Cluster", "c"),
            ("MachineDeployment", "a"),
            ("MachineDeployment", "b"),
            ("MachineDeployment", "d"),
        ] {
            let object = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": { "name": name },
                "spec": { "clusterName": "c" }, "status": { "phase": "Provisioned",
                    "conditions": [{ "type": "Available", "status": "True" }] } });
            snapshot.take(kind, WatchEvent::Applied(Object(object)));
        }
        let lines = |height| picture(("demo", Duration::ZERO), &[], (&snapshot, &snapshot.waits()), height);
        let whole = lines(40);
        assert!(
            whole.iter().any(|line| line.starts_with("└─ MachineDeployment/d")),
            "{whole:?}"
        );
        let cut = lines(whole.len() - 2);
        assert_eq!(cut.len(), whole.len() - 2);
        assert!(cut.contains(&"...".to_owned()) && cut.last() == whole.last(), "{cut:?}");
    }
}
