//! Counts the instructions of parts of the program under Valgrind, so that the counts do not depend on the load of the
//! machine. The build is unoptimized: production costs less, with the same growth.
//!
//! Without arguments the program runs itself under Valgrind, prints a table and compares it with a committed baseline
//! (`--bless` writes it). A path fails when it costs a tenth more than the baseline, or grows faster than allowed.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Other versions of the compiler and of dependencies change counts by less.
const MORE: f64 = 1.1;

/// A benchmark.
pub(crate) struct Bench {
    /// Names of the measured paths.
    pub(crate) paths: &'static [&'static str],
    /// Numbers of objects of a small run and of a large one.
    pub(crate) sizes: [u32; 2],
    /// Maximum exponent of the growth.
    pub(crate) steepest: f64,
    /// The file with the committed counts.
    pub(crate) baseline: &'static str,
    /// Runs a path, with the measured work inside [`counted_work`].
    pub(crate) run: fn(&str, u32) -> Result<()>,
}

/// The measured work; Valgrind finds it by this name.
#[inline(never)]
pub(crate) fn counted_work(work: &mut dyn FnMut()) {
    work();
}

impl Bench {
    /// Runs as the arguments of the program request.
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

    /// A line for each path: its name and its instructions for each size.
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
        println!("{} paths, {wrong} too expensive", now.len());
        ensure!(
            wrong == 0,
            "find the additional work per object, or bless the new counts and state the reason"
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{path} {size}: {stderr}");
    let collected = stderr.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = collected.with_context(|| format!("valgrind counted nothing: {stderr}"))?;
    let count: u64 = count.trim().parse()?;
    ensure!(
        count > u64::from(size),
        "{path} {size}: {count} instructions are too few"
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
