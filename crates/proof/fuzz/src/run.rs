//! Runs a target: its corpus, then generated inputs, and shrinks a finding.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use metal3_sim_faults::Random;

use crate::dictionary::Dictionary;
use crate::generate;
use crate::pool::Pool;
use crate::target::{Answer, Parse, Target};

/// Most attempts to make a finding shorter.
const SHRINKING: usize = 20_000;

/// A finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The input, shrunk.
    pub input: Vec<u8>,
    /// What is wrong.
    pub problem: String,
    /// The number of the input that found it.
    pub at: u64,
}

/// What a run saw.
#[derive(Debug, Default)]
pub struct Summary {
    /// Number of inputs.
    pub inputs: u64,
    /// Number of accepted inputs.
    pub accepted: u64,
    /// Number of kinds of answers.
    pub outcomes: usize,
    /// The first finding.
    pub finding: Option<Finding>,
}

/// The corpus of a target, in the order of its file names.
///
/// # Errors
/// When a file cannot be read.
pub fn corpus(target: &Target) -> Result<Vec<Vec<u8>>> {
    let folder = folder(target);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let read = |file: &PathBuf| std::fs::read(file).with_context(|| format!("read {}", file.display()));
    files.iter().map(read).collect()
}

/// The folder of its corpus.
#[must_use]
pub fn folder(target: &Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name)
}

/// Runs the corpus and generated inputs while `goes_on` holds, which gets the number of inputs so far.
pub fn run(
    target: &Target,
    parse: Parse<'_>,
    corpus: &[Vec<u8>],
    seed: u64,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Summary {
    let mut random = Random::seeded(seed);
    let mut summary = Summary::default();
    let dictionary = Dictionary::of(target, corpus);
    let mut pool = Pool::new(corpus, &dictionary);
    let mut first = corpus.iter();
    while goes_on(summary.inputs) {
        let input = match first.next() {
            Some(input) => input.clone(),
            None => generate::input(target, &mut pool, &dictionary, &mut random),
        };
        summary.inputs += 1;
        match check(target, parse, &input) {
            Ok(answer) => {
                summary.accepted += u64::from(answer.accepted().is_some());
                pool.add(input, &answer);
            }
            Err(problem) => {
                let input = shrink(target, parse, input);
                summary.finding = Some(Finding {
                    problem: check(target, parse, &input).err().unwrap_or(problem),
                    input,
                    at: summary.inputs,
                });
                break;
            }
        }
    }
    summary.outcomes = pool.kinds();
    summary
}

/// Runs one input.
///
/// # Errors
/// The finding.
pub fn check(target: &Target, parse: Parse<'_>, input: &[u8]) -> Result<Answer, String> {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let answer = parse(input);
        let size = match &answer {
            Answer::Accepted(text) | Answer::Rejected(text) => text.len(),
        };
        // A document may be shown with the names of all its members; it does not multiply.
        if size > (64 << 10) + 64 * input.len() {
            return Err(format!("{} bytes of input give {size} bytes", input.len()));
        }
        (target.property)(input, &answer, parse)?;
        Ok(answer)
    }));
    checked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without a message")))
    })
}

/// Removes pieces while the input remains a finding.
fn shrink(target: &Target, parse: Parse<'_>, mut input: Vec<u8>) -> Vec<u8> {
    let mut length = input.len() / 2;
    let mut attempts = 0;
    while length > 0 {
        let (mut at, mut shorter) = (0, false);
        while at + length <= input.len() && attempts < SHRINKING {
            attempts += 1;
            let without: Vec<u8> = input
                .iter()
                .take(at)
                .chain(input.iter().skip(at + length))
                .copied()
                .collect();
            if check(target, parse, &without).is_err() {
                input = without;
                shorter = true;
            } else {
                at += length;
            }
        }
        if attempts >= SHRINKING {
            break;
        }
        if !shorter {
            length /= 2;
        }
    }
    input
}
