//! A program that counts the instructions of pieces of its own work. Valgrind counts them, so the figures are the same
//! on a busy machine and an idle one. They are those of the everyday build: what it costs in production is less, how it
//! grows is the same.
//!
//! Called without arguments, the program runs itself under Valgrind, prints a table and compares it with a committed
//! baseline (`--bless` writes that). A path fails when it costs a tenth more than the baseline, or when it grows more
//! steeply than it may: what is quadratic shows there first.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Other versions of the compiler and of dependencies move counts by less.
const MORE: f64 = 1.1;

/// What is counted.
pub(crate) struct Bench {
    /// Names of the pieces.
    pub(crate) paths: &'static [&'static str],
    /// How many objects, in a small run and in a large one.
    pub(crate) sizes: [u32; 2],
    /// The power of the number of objects that a piece may cost.
    pub(crate) steepest: f64,
    /// The file with the committed counts.
    pub(crate) baseline: &'static str,
    /// Runs a piece, with what is to be counted inside [`counted_work`].
    pub(crate) run: fn(&str, u32) -> Result<()>,
}

/// What is counted, and nothing else: Valgrind looks for this name.
#[inline(never)]
pub(crate) fn counted_work(work: &mut dyn FnMut()) {
    work();
}

impl Bench {
    /// Does what the arguments of the program say.
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    pub(crate) fn main(&self) -> Result<()> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => self.compare(&self.table()?),
            ["--bless"] => {
                let table = self.table()?;
                fs::write(self.baseline, &table).context("writing the baseline")?;
                print!("{table}");
                Ok(())
            }
            [path, size] => (self.run)(path, size.parse()?),
            _ => bail!("usage: [--bless | PATH SIZE]"),
        }
    }

    /// A line for each path: its name, and its instructions for each size.
    fn table(&self) -> Result<String> {
        let mut table = String::new();
        for path in self.paths {
            let [small, large] = self.sizes.map(|size| instructions(path, size));
            table += &format!("{path} {} {}\n", small?, large?);
        }
        Ok(table)
    }

    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    fn compare(&self, now: &str) -> Result<()> {
        let baseline = fs::read_to_string(self.baseline).context("reading the baseline; --bless writes it")?;
        let (before, now) = (rows(&baseline)?, rows(now)?);
        let [few, many] = self.sizes.map(f64::from);
        let mut wrong = 0_u32;
        println!("path      per object of {few}   of {many}   growth   of baseline");
        for (path, [small, large]) in &now {
            let growth = (large / small).log10() / (many / few).log10();
            let old = before.iter().find(|(name, _)| name == path);
            let (_, [_, old]) = old.with_context(|| format!("the baseline has no {path}; --bless writes it"))?;
            let ratio = large / old;
            let good = growth <= self.steepest && ratio <= MORE;
            wrong = wrong.saturating_add(u32::from(!good));
            println!(
                "{path:<8}{:>22.0}{:>12.0}{growth:>9.3}{:>13.0}%{}",
                small / few,
                large / many,
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
