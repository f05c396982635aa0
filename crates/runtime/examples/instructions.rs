//! Counts the instructions of the three paths that run for every event: a hub that takes objects in, the queue, the
//! difference of two documents. Valgrind counts them, so the figures are the same on a busy machine and an idle one.
//! They are those of the everyday build: what it costs in production is less, how it grows is the same.
//!
//! Called without arguments, it runs itself under Valgrind, prints a table and compares it with the committed baseline
//! beside this file (`--bless` writes that). A path fails when it costs a tenth more than the baseline, or when ten
//! times as many objects cost more than a little over ten times as much: what is quadratic shows there first.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use metal3_domain::clock::Monotonic;
use metal3_runtime::hub::{Hub, Index, Indexes, Item, Key};
use metal3_runtime::patch::Changes;
use metal3_runtime::queue::{Lane, Outcome, WorkQueue};
use metal3_runtime::version::ResourceVersion;
use serde_json::{Value, json};

const PATHS: [&str; 3] = ["ingest", "queue", "patch"];
const SIZES: [u32; 2] = [1_000, 10_000];
/// Ten times as many objects may cost so many powers of ten more: a tree grows by a level or two meanwhile.
const STEEPEST: f64 = 1.2;
/// Other versions of the compiler and of dependencies move counts by less.
const MORE: f64 = 1.1;
const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/instructions.txt");

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => compare(&table()?),
        ["--bless"] => {
            let table = table()?;
            fs::write(BASELINE, &table).context("writing the baseline")?;
            print!("{table}");
            Ok(())
        }
        [path, size] => run(path, size.parse()?),
        _ => bail!("usage: instructions [--bless | PATH SIZE]"),
    }
}

/// What is counted, and nothing else: Valgrind looks for this name.
#[inline(never)]
fn counted_work(work: &mut dyn FnMut()) {
    work();
}

fn run(path: &str, size: u32) -> Result<()> {
    match path {
        "ingest" => ingest(size),
        "queue" => {
            queue(size);
            Ok(())
        }
        "patch" => {
            patch(size);
            Ok(())
        }
        other => bail!("no path {other:?}"),
    }
}

/// Keys by the value of a label, of which ten objects have the same.
#[derive(Debug, Default)]
struct ByLabel(Index<String>);

impl Indexes<ConfigMap> for ByLabel {
    fn replace(&mut self, key: &Key, old: Option<&ConfigMap>, new: Option<&ConfigMap>) {
        let label = |object: &ConfigMap| object.metadata.labels.as_ref()?.get("owner").cloned();
        self.0.replace(key, old.and_then(label), new.and_then(label));
    }
}

fn item(number: u32, version: u32) -> Result<Item<ConfigMap>> {
    let document = json!({
        "metadata": {
            "name": format!("n{number}"), "namespace": "ns", "uid": format!("u{number}"),
            "resourceVersion": version.to_string(), "labels": {"owner": format!("o{}", number / 10)},
        },
        "data": {"version": version.to_string()},
    });
    Ok(Item::Object(serde_json::from_value(document)?))
}

/// A first list, a change of every object, and the end of half of them.
fn ingest(size: u32) -> Result<()> {
    let at = |version: u32| ResourceVersion::parse(&version.to_string());
    let mut hub = Hub::<ConfigMap, ByLabel>::default();
    let mut told = 0_u32;
    hub.on(|change| drop(change.key()));
    let list = (0..size).map(|number| item(number, 1)).collect::<Result<Vec<_>>>()?;
    let changes = (0..size).map(|number| item(number, number.saturating_add(10)));
    let changes = changes.collect::<Result<Vec<_>>>()?;
    let ends =
        (0..size / 2).map(|number| Ok(item(number, number.saturating_add(size).saturating_add(10))?.identity()?));
    let ends = ends.collect::<Result<Vec<_>>>()?;
    let (mut parts, first) = (Some((list, changes)), at(2)?);
    let mut refused = None;
    counted_work(&mut || {
        let Some((list, changes)) = parts.take() else { return };
        let mut entered = hub.listed(list, first.clone());
        for change in changes {
            entered = entered.and_then(|()| hub.observed(change));
        }
        for end in &ends {
            hub.observed_gone(end);
            told = told.saturating_add(1);
        }
        refused = entered.err();
    });
    ensure!(refused.is_none() && told == size / 2, "the hub refused: {refused:?}");
    Ok(())
}

/// All keys from a list, then each again for an event, with failures and timers among the passes.
fn queue(size: u32) {
    let keys: Vec<Key> = (0..size)
        .map(|number| Key {
            namespace: "ns".to_owned(),
            name: format!("n{number}"),
        })
        .collect();
    let mut queue = WorkQueue::default();
    counted_work(&mut || {
        for (lane, outcome) in [
            (Lane::Low, Outcome::Failed),
            (Lane::High, Outcome::Recheck(Duration::from_secs(1))),
        ] {
            for key in &keys {
                queue.add(key.clone(), lane, Monotonic::default());
            }
            while let Some(taken) = queue.take(Monotonic::default()) {
                queue.finish(&taken.key, outcome, Monotonic::default());
            }
        }
        let later = Monotonic::new(Duration::from_secs(9));
        while let Some(taken) = queue.take(later) {
            queue.finish(&taken.key, Outcome::Settled, later);
        }
    });
}

/// Two documents with so many members, a tenth of which differ.
fn patch(size: u32) {
    let document = |moved: bool| {
        let member = |number: u32| {
            let changed = moved && number.is_multiple_of(10);
            (
                format!("m{number}"),
                json!({"kept": [1, 2, {"a": "b"}], "value": changed}),
            )
        };
        let members: Value = (0..size).map(member).collect::<serde_json::Map<_, _>>().into();
        json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": members, "status": {"phase": moved}})
    };
    let (before, after) = (document(false), document(true));
    let mut changes = None;
    counted_work(&mut || changes = Some(Changes::between(&before, &after)));
    drop(changes);
}

/// A line for each path: its name, and its instructions for each size.
fn table() -> Result<String> {
    let mut table = String::new();
    for path in PATHS {
        let counts = SIZES.map(|size| instructions(path, size));
        let [small, large] = counts;
        table += &format!("{path} {} {}\n", small?, large?);
    }
    Ok(table)
}

fn instructions(path: &str, size: u32) -> Result<u64> {
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*counted_work*",
        ])
        .arg(std::env::current_exe()?)
        .args([path, &size.to_string()])
        .output()
        .context("running valgrind: install it, version 3.19 or newer")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{path} {size}: {said}");
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = collected.with_context(|| format!("valgrind counted nothing: {said}"))?;
    let count: u64 = count.trim().parse()?;
    ensure!(
        count > u64::from(size),
        "{path} {size}: {count} instructions are none of ours"
    );
    Ok(count)
}

fn rows(table: &str) -> Result<Vec<(String, [f64; 2])>> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let mut next = || words.next().context("a row is a name and two counts");
        Ok((next()?.to_owned(), [next()?.parse()?, next()?.parse()?]))
    };
    table.lines().map(row).collect()
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn compare(now: &str) -> Result<()> {
    let baseline = fs::read_to_string(Path::new(BASELINE)).context("reading the baseline; --bless writes it")?;
    let (before, now) = (rows(&baseline)?, rows(now)?);
    let mut wrong = 0_u32;
    println!("path      per object of 1,000   of 10,000   growth   of baseline");
    for (path, [small, large]) in &now {
        let growth = (large / small).log10();
        let old = before.iter().find(|(name, _)| name == path);
        let (_, [_, old]) = old.with_context(|| format!("the baseline has no {path}; --bless writes it"))?;
        let ratio = large / old;
        let good = growth <= STEEPEST && ratio <= MORE;
        wrong = wrong.saturating_add(u32::from(!good));
        println!(
            "{path:<8}{:>22.0}{:>12.0}{growth:>9.2}{:>13.0}%{}",
            small / f64::from(SIZES[0]),
            large / f64::from(SIZES[1]),
            ratio * 100.0,
            if good { "" } else { "  too many" }
        );
    }
    println!("{} paths, {wrong} too dear", now.len());
    ensure!(
        wrong == 0,
        "look for what is done once an object too often, or bless the new counts with the reason"
    );
    Ok(())
}
