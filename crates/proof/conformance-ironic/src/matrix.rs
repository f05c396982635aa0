//! What is claimed, what it takes to prove it, and where that is done: the committed matrix.

use std::fmt::Write as _;

use super::{About, CLAIMS, Level, Needs};

/// Something that is true of the simulated Ironic and that no claim of the contract proves.
struct Statement {
    about: About,
    level: Level,
    words: &'static str,
    /// Where it is held against a real Ironic; none: nowhere yet.
    real: Option<&'static str>,
}

const STATEMENTS: &[Statement] = &[
    Statement {
        about: About::Transition,
        level: Level::L1,
        words: "the table of transitions, and where each state heads, are Ironic's own",
        real: Some("`make ironic-contract`"),
    },
    Statement {
        about: About::Transition,
        level: Level::L1,
        words: "random operations are answered alike and leave 30 fields, reasons for maintenance and the presence of 4 \
                more alike",
        real: Some("`make ironic-differ`"),
    },
    Statement {
        about: About::Transition,
        level: Level::L3,
        words: "each of 15 faults of a machine ends in the same state, power and maintenance",
        real: Some("[the table of faults](ironic-faults.md)"),
    },
    Statement {
        about: About::Record,
        level: Level::L3,
        words: "an inventory is what the shared hardware profile says",
        real: Some("`make ironic-life`, same code"),
    },
    Statement {
        about: About::Record,
        level: Level::L3,
        words: "a failed inspection is shown without words until its machine is off",
        real: None,
    },
    Statement {
        about: About::Record,
        level: Level::L2,
        words: "subscriptions to the events of a machine, and its BIOS settings, which outlive the database",
        real: None,
    },
    Statement {
        about: About::Transition,
        level: Level::L3,
        words: "a deployment and a rebuild write the image with its config-drive, and cleaning erases it",
        real: Some("`make ironic-life`"),
    },
];

/// The matrix as a document.
#[must_use]
pub fn document() -> String {
    let mut text = String::from(
        "# What is claimed of Ironic\n\n\
         Made by `UPDATE=1 cargo test -p metal3-sim-ironic --test matrix`. The level is the least that must be real to prove \
         a claim: 1 is Ironic with fake hardware, which passes no wait states, 2 adds BMCs, 3 agents in ramdisks. Every \
         claim holds on the simulated Ironic in each run of the tests. The last column names the command that holds it against \
         the real one; whether it did, that command says and not this page. CI runs those of level 1 alone, and lives. Where it is \
         empty, the simulated one follows Ironic's documentation and code, and nothing real is asked.\n\n\
         | about | level | claim | on the real Ironic |\n| --- | --- | --- | --- |\n",
    );
    let claims = CLAIMS.iter().map(|claim| {
        let words = claim.name.replace('_', " ");
        let real = match (claim.level, claim.needs) {
            (Level::L1, Needs::Nothing | Needs::Sockets) => "`make ironic-contract`",
            (Level::L2 | Level::L3, _) | (_, Needs::Peace) => "`make ironic-machines`",
        };
        (claim.about, claim.level, words, Some(real))
    });
    let statements = STATEMENTS.iter().map(|statement| {
        (
            statement.about,
            statement.level,
            statement.words.to_owned(),
            statement.real,
        )
    });
    let mut rows: Vec<_> = claims.chain(statements).collect();
    rows.sort();
    for (about, level, words, real) in rows {
        let about = format!("{about:?}").to_lowercase();
        let level = format!("{level:?}").replace('L', "");
        // Writing to text cannot fail.
        writeln!(text, "| {about} | {level} | {words} | {} |", real.unwrap_or_default()).ok();
    }
    text
}
