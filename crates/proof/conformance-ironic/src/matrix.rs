//! The committed matrix: claims, their level and the command that checks them.

use std::fmt::Write as _;

use super::{About, CLAIMS, Level, Needs};

/// A statement about the simulated Ironic without a claim.
struct Statement {
    about: About,
    level: Level,
    text: &'static str,
    /// The command that checks it on a real Ironic, if any.
    real: Option<&'static str>,
}

const STATEMENTS: &[Statement] = &[
    Statement {
        about: About::Transition,
        level: Level::L1,
        text: "the table of transitions and the target of each state equal Ironic's own",
        real: Some("`make ironic-contract`"),
    },
    Statement {
        about: About::Transition,
        level: Level::L1,
        text: "random operations have the same responses and results: 30 fields, reasons for maintenance and the \
                presence of 4 more fields",
        real: Some("`make ironic-differ`"),
    },
    Statement {
        about: About::Transition,
        level: Level::L3,
        text: "each of 15 machine faults results in the same state, power and maintenance",
        real: Some("[the table of faults](ironic-faults.md)"),
    },
    Statement {
        about: About::Record,
        level: Level::L3,
        text: "an inventory equals the shared hardware profile",
        real: Some("`make ironic-life`, same code"),
    },
    Statement {
        about: About::Record,
        level: Level::L3,
        text: "a failed inspection has no error until its machine is off",
        real: None,
    },
    Statement {
        about: About::Record,
        level: Level::L2,
        text: "event subscriptions of a machine, and its BIOS settings, which survive a lost database",
        real: None,
    },
    Statement {
        about: About::Transition,
        level: Level::L3,
        text: "a deployment and a rebuild write the image with its config-drive, and cleaning erases them",
        real: Some("`make ironic-life`"),
    },
    Statement {
        about: About::Transition,
        level: Level::L3,
        text: "an agent gets `skip_block_devices` of its node with each cleaning, and spares what a hint matches",
        real: Some("`make host-cleaning`"),
    },
    Statement {
        about: About::Transition,
        level: Level::L3,
        text: "cleaning of metadata spares a disk only if the hints match its partitions too, fails on an invalid hint, and an image is \
                written to a disk that is skipped by serial number or world wide name alone",
        real: None,
    },
];

/// The matrix as a document.
#[must_use]
pub fn document() -> String {
    let mut page = String::from(
        "# Claims about Ironic\n\n\
         Written by `UPDATE=1 cargo test -p metal3-conformance-ironic --test matrix`. The level is what a check needs: 1 is \
         Ironic with fake hardware, which skips wait states, 2 adds BMCs, 3 adds agents in ramdisks. Every claim holds on the \
         simulated Ironic in each test run. The last column has the command that checks it on a real Ironic; this page does \
         not record the result. CI runs the claims of level 1 and the life cycles. Without a command, the simulator follows \
         Ironic's documentation and code, and no real Ironic is checked.\n\n\
         | topic | level | claim | on a real Ironic |\n| --- | --- | --- | --- |\n",
    );
    let claims = CLAIMS.iter().map(|claim| {
        let text = claim.name.replace('_', " ");
        let real = match (claim.level, claim.needs) {
            (Level::L1, Needs::Nothing | Needs::Sockets) => "`make ironic-contract`",
            (Level::L2 | Level::L3, _) | (_, Needs::Exclusive) => "`make ironic-machines`",
        };
        (claim.about, claim.level, text, Some(real))
    });
    let statements = STATEMENTS.iter().map(|statement| {
        (
            statement.about,
            statement.level,
            statement.text.to_owned(),
            statement.real,
        )
    });
    let mut rows: Vec<_> = claims.chain(statements).collect();
    rows.sort();
    for (about, level, text, real) in rows {
        let about = format!("{about:?}").to_lowercase();
        let level = format!("{level:?}").replace('L', "");
        // Writing to a string cannot fail.
        writeln!(page, "| {about} | {level} | {text} | {} |", real.unwrap_or_default()).ok();
    }
    page
}
