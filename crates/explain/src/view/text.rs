//! Reports as text.

use metal3_api::meta::Time;

use super::claims::ClaimRow;
use super::consumers::ConsumerRow;
use super::host::HostRow;
use super::pools::PoolRow;
use super::timeline::Moment;
use super::top::Top;
use super::tree::Node;
use super::{Content, Report};
use crate::chain::State;
use crate::text::{bounded, duration, lasting, missing, one_line, printable_text, seconds_text};

/// The lines for a person who looks at `now`. Without a namespace the report is about all.
#[must_use]
pub fn render(report: &Report, namespace: Option<&str>, now: Time) -> String {
    let is_wide = namespace.is_none();
    let mut text = match &report.content {
        Content::Hosts(rows) => hosts(rows, is_wide, now),
        Content::Pools(rows) => pools(rows, is_wide),
        Content::Consumers(rows) => consumers(rows, is_wide),
        Content::Claims(rows) => claims(rows, is_wide, now),
        Content::Tree(node) => node.as_ref().map(|node| tree(node, 0, now)).unwrap_or_default(),
        Content::Timeline(rows) => timeline(rows, now),
        Content::Top(top) => tables(top, is_wide),
    };
    if text.is_empty() {
        text = match report.state {
            State::Unknown => String::new(),
            State::Absent => "It does not exist.\n".to_owned(),
            State::Ready | State::Waiting | State::Blocked => match namespace {
                Some(namespace) => format!("Nothing found in the namespace {namespace}.\n"),
                None => "Nothing found.\n".to_owned(),
            },
        };
    }
    for not_read in &report.not_read {
        text.push_str(&missing(not_read, namespace));
    }
    printable_text(&text)
}

/// Columns as wide as their widest cell. An empty cell is a dash.
fn columns(head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let last = head.len().saturating_sub(1);
    let cell = |(column, text): (usize, String)| shown(&text, column == last);
    let rows = rows
        .into_iter()
        .map(|row| row.into_iter().enumerate().map(cell).collect());
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let count = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    // The last column is not padded: it holds messages.
    let widths: Vec<usize> = (0..count)
        .map(|column| if column == last { 0 } else { width(column) })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let cells: Vec<String> = cells.collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// The text of a cell. The last one of a row may be a message.
fn shown(cell: &str, is_last: bool) -> String {
    match cell.trim() {
        "" => "-".to_owned(),
        text if is_last => one_line(&bounded(text)),
        text => one_line(&cut(text)),
    }
}

/// The begin of a long cell: each line is as wide as the widest one. `-o json` has the whole text.
fn cut(cell: &str) -> String {
    /// More than the longest name of an object.
    const LONGEST: usize = 300;
    match cell.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", cell.get(..end).unwrap_or_default()),
        None => cell.to_owned(),
    }
}

/// Columns with the namespace before them when the report is about all.
fn placed(is_wide: bool, head: &[&str], rows: Vec<(String, Vec<String>)>) -> String {
    if !is_wide {
        return columns(head, rows.into_iter().map(|(_, cells)| cells).collect());
    }
    let head: Vec<&str> = std::iter::once("NAMESPACE").chain(head.iter().copied()).collect();
    let rows = rows
        .into_iter()
        .map(|(namespace, cells)| std::iter::once(namespace).chain(cells).collect());
    columns(&head, rows.collect())
}

const HOSTS: [&str; 10] = [
    "NAME", "STATE", "STATUS", "POWER", "CONSUMER", "CLUSTER", "IMAGE", "BMC", "ERROR", "FOR",
];

fn hosts(rows: &[HostRow], is_wide: bool, now: Time) -> String {
    let rows = rows.iter().map(|row| (row.namespace.clone(), host_cells(row, now)));
    placed(is_wide, &HOSTS, rows.collect())
}

fn host_cells(row: &HostRow, now: Time) -> Vec<String> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let paused = if row.paused { ", paused" } else { "" };
    let image = row.image.as_ref().map(|image| image.trim_end_matches("?***"));
    let image = image.and_then(|image| image.rsplit('/').next());
    vec![
        row.name.clone(),
        row.state.clone(),
        format!("{}{paused}", row.status).trim_start_matches(", ").to_owned(),
        power(row.online, row.powered_on),
        text(&row.consumer),
        text(&row.cluster),
        image.unwrap_or_default().to_owned(),
        text(&row.bmc),
        text(&row.error),
        row.since.map(|since| duration(since, now)).unwrap_or_default(),
    ]
}

/// One line about a host that changed, without a table.
#[must_use]
pub fn host_line(row: &HostRow, is_wide: bool, now: Time) -> String {
    let namespace = is_wide.then(|| row.namespace.clone());
    let cells = namespace.into_iter().chain(host_cells(row, now));
    let cells: Vec<String> = cells.map(|cell| shown(&cell, false)).collect();
    printable_text(&format!("{}\n", cells.join("  ").trim_end()))
}

/// The power as it is, and as it shall be where that differs.
pub(super) fn power(online: bool, powered_on: bool) -> String {
    match (powered_on, online) {
        (true, true) => "on",
        (false, false) => "off",
        (true, false) => "on, shall be off",
        (false, true) => "off, shall be on",
    }
    .to_owned()
}

fn pools(rows: &[PoolRow], is_wide: bool) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let table = rows.iter().map(|row| {
        let numbers = [&row.total, &row.used, &row.free, &row.reserved, &row.reason];
        let cells = std::iter::once(row.name.clone()).chain(numbers.into_iter().map(text));
        (row.namespace.clone(), cells.collect())
    });
    let head = ["NAME", "TOTAL", "USED", "FREE", "RESERVED", "REASON"];
    let mut shown = placed(is_wide, &head, table.collect());
    let holders = rows.iter().flat_map(|row| {
        row.holders.iter().flatten().map(|holder| {
            let cells = vec![
                row.name.clone(),
                holder.address.clone(),
                holder.claim.clone(),
                text(&holder.owner),
            ];
            (row.namespace.clone(), cells)
        })
    });
    let holders = placed(is_wide, &["POOL", "ADDRESS", "CLAIM", "OWNER"], holders.collect());
    let waiting = rows.iter().flat_map(|row| {
        row.waiting.iter().map(|one| {
            let cells = vec![row.name.clone(), one.claim.clone(), text(&one.owner), text(&one.reason)];
            (row.namespace.clone(), cells)
        })
    });
    let waiting = placed(
        is_wide,
        &["POOL", "WAITING CLAIM", "OWNER", "REASON"],
        waiting.collect(),
    );
    for table in [holders, waiting] {
        if !table.is_empty() {
            shown = format!("{shown}\n{table}");
        }
    }
    shown
}

fn consumers(rows: &[ConsumerRow], is_wide: bool) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let rows = rows.iter().map(|row| {
        let parts = [&row.host, &row.consumer, &row.machine, &row.cluster, &row.note];
        (row.namespace.clone(), parts.into_iter().map(text).collect())
    });
    placed(
        is_wide,
        &["HOST", "CONSUMER", "MACHINE", "CLUSTER", "NOTE"],
        rows.collect(),
    )
}

fn claims(rows: &[ClaimRow], is_wide: bool, now: Time) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let rows = rows.iter().map(|row| {
        let image = row.image.as_ref().map(|image| image.trim_end_matches("?***"));
        let image = image.and_then(|image| image.rsplit('/').next());
        // Without a host it is not off.
        let power = row.host.as_ref().map(|_| power(row.online, row.powered_on));
        let deleted = if row.deleted { ", deleted" } else { "" };
        let cells = vec![
            row.name.clone(),
            text(&row.host),
            power.unwrap_or_default(),
            image.unwrap_or_default().to_owned(),
            format!("{}{deleted}", text(&row.reason))
                .trim_start_matches(", ")
                .to_owned(),
            row.since.map(|since| duration(since, now)).unwrap_or_default(),
            row.message.clone(),
        ];
        (row.namespace.clone(), cells)
    });
    placed(
        is_wide,
        &["NAME", "HOST", "POWER", "IMAGE", "READY", "FOR", "MESSAGE"],
        rows.collect(),
    )
}

fn tree(node: &Node, depth: usize, now: Time) -> String {
    let indent = "  ".repeat(depth);
    let details = node.details.iter().map(|(key, value)| format!("{key}: {value}"));
    let details: Vec<String> = details.collect();
    let details = if details.is_empty() {
        String::new()
    } else {
        format!(" [{}]", details.join(", "))
    };
    let state = match (&node.title, node.state) {
        (Some(title), _) => title.clone(),
        (None, State::Ready) => "ok".to_owned(),
        (None, state) => state.as_str().to_owned(),
    };
    let since = node.since.map(|since| lasting(since, node.at_most, now));
    let parts: Vec<String> = node.reason.iter().map(one_line).chain(since).collect();
    let reason = match parts.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    };
    let (object, state, details) = (one_line(&node.object), one_line(&state), one_line(&details));
    let mut text = format!("{indent}- {object}: {state}{reason}{details}\n");
    for line in bounded(&node.message).lines() {
        text.push_str(&format!("{indent}    {line}\n"));
    }
    for child in &node.children {
        text.push_str(&tree(child, depth + 1, now));
    }
    text
}

fn timeline(rows: &[Moment], now: Time) -> String {
    let rows = rows.iter().map(|row| {
        let took = match (row.seconds, row.running) {
            (Some(seconds), _) => seconds_text(seconds),
            (None, true) => format!("{} so far", duration(row.time, now)),
            (None, false) => String::new(),
        };
        vec![
            row.time.to_string(),
            row.step.clone(),
            row.state.clone(),
            took,
            row.actor.clone(),
            row.cause.clone(),
        ]
    });
    columns(&["TIME", "STEP", "STATE", "TOOK", "ACTOR", "CAUSE"], rows.collect())
}

fn tables(top: &Top, is_wide: bool) -> String {
    let time = |seconds: Option<i64>| seconds.map(seconds_text).unwrap_or_default();
    let steps = top.steps.iter().map(|row| {
        vec![
            row.step.clone(),
            row.hosts.to_string(),
            row.running.to_string(),
            time(row.median_seconds),
            time(row.longest_seconds),
            row.longest_host.clone().unwrap_or_default(),
        ]
    });
    let steps = columns(
        &["STEP", "HOSTS", "RUNNING", "MEDIAN", "LONGEST", "HOST"],
        steps.collect(),
    );
    let errors = top.errors.iter().map(|row| {
        let cells = vec![
            row.host.clone(),
            row.reason.clone(),
            row.count.to_string(),
            row.message.clone(),
        ];
        (row.namespace.clone(), cells)
    });
    let errors = placed(is_wide, &["HOST", "ERROR", "FAILURES", "MESSAGE"], errors.collect());
    let waits = top.waits.iter().map(|row| {
        (
            row.namespace.clone(),
            vec![row.object.clone(), row.reason.clone(), seconds_text(row.seconds)],
        )
    });
    let waits = placed(is_wide, &["OBJECT", "WAIT", "FOR"], waits.collect());
    let shown = [steps, errors, waits].into_iter().filter(|table| !table.is_empty());
    shown.collect::<Vec<_>>().join("\n")
}
