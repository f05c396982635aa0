//! The picture of a terminal: drawn on its second screen, so that the first one is as it was afterwards.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
/// Lines that stay above the picture. What was said last is whole, if the terminal has the lines.
const SAID: usize = 8;
/// Hosts and machines that are shown.
const ROWS: usize = 12;
/// Causes that are shown.
const WAITS: usize = 5;

/// What stays on top.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) title: String,
    /// How the world is reached.
    pub(crate) access: Vec<String>,
}

/// Rows and columns.
#[derive(Debug, Clone, Copy)]
struct Size {
    rows: usize,
    columns: usize,
}

/// Of a terminal that does not say its own.
const USUAL: Size = Size { rows: 24, columns: 80 };

/// A terminal in use. Dropping it gives the first screen back, with all that was said.
pub(super) struct Screen {
    head: Head,
    said: Vec<String>,
    size: Size,
    /// Another size.
    resized: Option<Signal>,
}

impl Screen {
    pub(super) fn new(head: Head) -> Self {
        write(ENTER);
        Self {
            head,
            said: Vec::new(),
            size: size().unwrap_or(USUAL),
            resized: signal(SignalKind::window_change()).ok(),
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }

    pub(super) fn draw(&mut self, snapshot: &Snapshot, waits: &[String], elapsed: Duration) {
        let resized = self.resized.as_mut().and_then(|resized| resized.recv().now_or_never());
        if resized.flatten().is_some() {
            self.size = size().unwrap_or(self.size);
        }
        let lines = picture((&self.head, elapsed), &self.said, (snapshot, waits), self.size);
        let mut text = HOME.to_owned();
        text.push_str(&lines.join(END_OF_LINE));
        text.push_str(END_OF_SCREEN);
        write(&text);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(LEAVE);
        for text in &self.said {
            write(&format!("{text}\n"));
        }
    }
}

/// A terminal that is gone is no reason to end.
fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// The size of the terminal, as `stty` of every Unix says it.
fn size() -> Option<Size> {
    let mut command = Command::new("stty");
    let output = command
        .arg("size")
        .stdin(Stdio::inherit())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    parsed(&String::from_utf8(output.stdout).ok()?)
}

fn parsed(text: &str) -> Option<Size> {
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse::<usize>().ok().filter(|number| *number > 0));
    Some(Size {
        rows: numbers.next()??,
        columns: numbers.next()??,
    })
}

/// The lines of the picture, at most as many as the terminal has.
fn picture(
    (head, elapsed): (&Head, Duration),
    said: &[String],
    (snapshot, waits): (&Snapshot, &[String]),
    size: Size,
) -> Vec<String> {
    let mut lines = vec![format!("{}   {:.1} s", head.title, elapsed.as_secs_f64())];
    lines.extend(wrapped(&head.access, size.columns));
    let left = |lines: &[String]| size.rows.saturating_sub(lines.len());
    let said = last_said(said, size.columns, left(&lines));
    lines.extend(said);
    lines.push(String::new());
    let end = match waits {
        [] => vec!["no Cluster waits for anything".to_owned()],
        waits => wrapped(&first("waits for  ", waits, WAITS), size.columns),
    };
    // With the empty line below each part.
    let below = end.len().saturating_add(1);
    lines.extend(snapshot.summary(left(&lines).saturating_sub(below).min(ROWS)));
    lines.push(String::new());
    let trees: Vec<String> = snapshot.trees().lines().map(str::to_owned).collect();
    let room = left(&lines).saturating_sub(below);
    if room > 0 && !trees.is_empty() {
        let is_cut = trees.len() > room;
        lines.extend(
            trees
                .into_iter()
                .take(if is_cut { room.saturating_sub(1) } else { room }),
        );
        lines.extend(is_cut.then(|| "...".to_owned()));
        lines.push(String::new());
    }
    lines.extend(end);
    lines.truncate(size.rows);
    lines
}

/// The last lines of what was said. The cure of an explanation is at its end.
fn last_said(said: &[String], columns: usize, room: usize) -> Vec<String> {
    let whole = |text: &String| wrapped(&text.lines().map(str::to_owned).collect::<Vec<_>>(), columns);
    let last = said.last().map(whole).unwrap_or_default().len();
    // Older ones than these are not shown in any case.
    let recent = said.iter().rev().take(SAID).rev();
    let mut lines: Vec<String> = recent.flat_map(whole).collect();
    let old = lines.len().saturating_sub(last.max(SAID).min(room));
    lines.drain(..old);
    lines
}

/// The lines, each continued below its own indent where it is longer than the terminal is wide.
fn wrapped(lines: &[String], columns: usize) -> Vec<String> {
    lines.iter().flat_map(|line| wrap(line, columns)).collect()
}

fn wrap(line: &str, columns: usize) -> Vec<String> {
    let spaces = line.chars().take_while(|one| *one == ' ').count();
    // A terminal that is narrower than the indent has none.
    let indent = " ".repeat(spaces.saturating_add(4).min(columns.div_euclid(2)));
    let (mut lines, mut current) = (Vec::new(), String::new());
    for word in line.split_inclusive(' ') {
        let width = |text: &str| text.trim_end().chars().count();
        let is_full = current.chars().count().saturating_add(width(word)) >= columns && !current.trim().is_empty();
        if is_full {
            lines.push(std::mem::replace(&mut current, indent.clone()).trim_end().to_owned());
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

/// The first lines, and how many more there are.
fn first(before: &str, all: &[String], most: usize) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(most).map(|line| format!("{before}{line}")).collect();
    let more = all.len().saturating_sub(most);
    lines.extend((more > 0).then(|| format!("{before}and {more} more")));
    lines
}

#[cfg(test)]
mod tests {
    use metal3_sim_capi::view::Object;
    use metal3_sim_capi::watch::WatchEvent;
    use serde_json::json;

    use super::*;

    fn head(access: &[&str]) -> Head {
        Head {
            title: "demo".to_owned(),
            access: access.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn picture_has_time_access_and_what_was_said_and_is_bounded() {
        let (said, head) = (["step 1".to_owned()], head(&["API server  http://x"]));
        let lines = |rows| {
            let size = Size { rows, columns: 80 };
            picture(
                (&head, Duration::from_millis(1_250)),
                &said,
                (&Snapshot::default(), &[]),
                size,
            )
        };
        let end = "no Cluster waits for anything";
        assert_eq!(
            lines(24),
            ["demo   1.2 s", "API server  http://x", "step 1", "", "", end]
        );
        assert_eq!(lines(2), ["demo   1.2 s", "API server  http://x"]);
        let many: Vec<String> = (0..9).map(|number| format!("{number}")).collect();
        assert_eq!(first("- ", &many, 2), ["- 0", "- 1", "- and 7 more"]);
        for (text, rows) in [("40 132\n", Some(40)), ("0 0", None), ("", None)] {
            assert_eq!(parsed(text).map(|size| size.rows), rows, "{text}");
        }
    }

    #[test]
    fn explanation_is_whole_on_a_narrow_terminal() {
        let cure = "What to do: See `status.errorMessage`: correct the image or its checksum, or repair the machine.";
        let text = format!("BareMetalHost/host-3 waits\n{}{cure}", "  - link\n".repeat(9));
        let mut said: Vec<String> = (1..20).map(|number| format!("step {number}")).collect();
        said.push(text.clone());
        let lines = last_said(&said, 40, 17);
        assert!(lines.iter().all(|line| line.chars().count() < 40), "{lines:?}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines.join(" ")), words(&text));
        assert!(last_said(&said, 40, 3).last().unwrap().ends_with("repair the machine."));
        assert_eq!(wrap("  a bb ccc", 8), ["  a bb", "    ccc"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(last_said(&said[..19], 40, 17).len(), SAID);
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
        let head = head(&[]);
        let lines = |rows| {
            let size = Size { rows, columns: 80 };
            picture((&head, Duration::ZERO), &[], (&snapshot, &snapshot.waits()), size)
        };
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
