//! `fuzz`: runs the targets for some seconds each.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use metal3_domain::clock::{Clock as _, SystemClock};
use metal3_fuzz::planted::planted;
use metal3_fuzz::run::{Finding, check, corpus, folder, run};
use metal3_fuzz::target::Target;
use metal3_fuzz::targets;

/// Runs fuzz targets. Every finding is shrunk, written into a file and printed.
#[derive(Parser)]
struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The seed of the generator.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these targets.
    #[arg(long)]
    target: Vec<String>,
    /// Plant the defect of each target, which it must find within this number of inputs.
    #[arg(long)]
    planted: Option<u64>,
    /// Run this file only, on the named target.
    #[arg(long)]
    input: Option<std::path::PathBuf>,
    /// The folder for findings.
    #[arg(long, default_value = "target/fuzz")]
    findings: std::path::PathBuf,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let targets: Vec<Target> = targets::all()
        .into_iter()
        .filter(|target| options.target.is_empty() || options.target.iter().any(|name| name == target.name))
        .collect();
    if targets.is_empty() {
        bail!("no target has this name");
    }
    // Panics are findings; their messages are part of the report.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(file) = &options.input {
        let input = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
        for target in &targets {
            println!("{:22} {:?}", target.name, check(target, &target.parse, &input));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(most) = options.planted {
        return find_planted(&targets, most, options.seed);
    }
    println!(
        "{:22} {:>10} {:>10} {:>8}  findings",
        "target", "inputs", "accepted", "outcomes"
    );
    let mut found = 0_u32;
    for target in &targets {
        let (begun, limit) = (SystemClock::start(), Duration::from_secs(options.seconds));
        let summary = run(target, &target.parse, &corpus(target)?, options.seed, |_| {
            begun.monotonic().since_start() < limit
        });
        let number = u32::from(summary.finding.is_some());
        println!(
            "{:22} {:>10} {:>10} {:>8}  {number}",
            target.name, summary.inputs, summary.accepted, summary.outcomes
        );
        if let Some(finding) = &summary.finding {
            report(&options, target, finding)?;
        }
        found += number;
    }
    println!("{} targets, {found} findings", targets.len());
    Ok(if found == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints which input found the planted defect of each target.
fn find_planted(targets: &[Target], most: u64, seed: u64) -> Result<ExitCode> {
    let mut missed = 0_u32;
    for target in targets {
        let begun = SystemClock::start();
        let summary = run(target, &planted(*target), &corpus(target)?, seed, |inputs| {
            inputs < most
        });
        let seconds = begun.monotonic().since_start().as_secs_f32();
        match summary.finding {
            Some(finding) => println!(
                "{:22} found by input {:>8} in {seconds:>5.1} s, {} bytes: {}",
                target.name,
                finding.at,
                finding.input.len(),
                finding.problem
            ),
            None => {
                println!("{:22} not found by {most} inputs in {seconds:.1} s", target.name);
                missed += 1;
            }
        }
    }
    println!("{} targets, {missed} missed their planted defect", targets.len());
    Ok(if missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn report(options: &Options, target: &Target, finding: &Finding) -> Result<()> {
    std::fs::create_dir_all(&options.findings)?;
    let file = options.findings.join(format!("{}-{}", target.name, finding.at));
    std::fs::write(&file, &finding.input)?;
    println!("  {}", finding.problem);
    println!("  input: {:?}", String::from_utf8_lossy(&finding.input));
    println!(
        "  again: cargo run --bin fuzz -- --target {} --input {}",
        target.name,
        file.display()
    );
    println!("  keep:  cp {} {}/", file.display(), folder(target).display());
    Ok(())
}
