//! Renders the table as a page of the documentation.

use super::flag::{Flag, Handling, Owner, Shape};
use super::table::TABLE;
use super::variables::{VARIABLES, Variable};

/// `docs/flags.md`.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(
        "# Flags\n\nWritten by `cargo run -p xtask -- codegen` from the table in `crates/flags`. Do not edit.\n\n\
         `capm3 --controllers=ipam,capm3,hosts [FLAGS]`. Flags are spelled as in Go: one dash or two, `--flag value` or\n\
         `--flag=value`, `--switch` or `--switch=false`; lists are separated by commas. A flag that is not\n\
         in these tables is unknown, and the program does not start with it.\n",
    );
    let supported = |flag: &Flag| matches!(flag.handling, Handling::Supported);
    section(
        &mut text,
        "Supported",
        "They have the described effect.",
        supported,
        |flag| flag.description.to_owned(),
    );
    let alias = |flag: &Flag| matches!(flag.handling, Handling::Alias(_));
    section(
        &mut text,
        "Aliases",
        "They set another flag.",
        alias,
        |flag| match flag.handling {
            Handling::Alias(other) => format!("`--{other}`"),
            Handling::Supported | Handling::Ignored(_) | Handling::Refused(_) => String::new(),
        },
    );
    let ignored = |flag: &Flag| matches!(flag.handling, Handling::Ignored(_));
    section(
        &mut text,
        "Ignored",
        "They are accepted without effect, with a warning in the log.",
        ignored,
        reason,
    );
    let rejected = |flag: &Flag| matches!(flag.handling, Handling::Refused(_));
    let why = "With a value other than the default the program does not start.";
    section(&mut text, "Rejected", why, rejected, reason);
    environment(&mut text);
    text
}

fn environment(text: &mut String) {
    text.push_str(
        "\n## Environment\n\n`--controllers=hosts` reads the same environment variables as the Go manager of hosts. \
         An invalid value is\nreported with the remedy, and the program does not start.\n\n\
         | Variable | Default | What |\n| --- | --- | --- |\n",
    );
    for Variable {
        name,
        default,
        description,
    } in VARIABLES
    {
        let default = Some(default).filter(|default| !default.is_empty());
        let default = default.map(|default| format!("`{default}`")).unwrap_or_default();
        text.push_str(&format!("| `{name}` | {default} | {description} |\n"));
    }
    text.push_str(
        "\n`--controllers=capm3` reads one, as its Go manager: with `CAPM3_FAST_TRACK=true`, exactly so spelled, a \
         released\nhost stays powered on, so that it is cleaned and deployed without a reboot.\n",
    );
}

fn reason(flag: &Flag) -> String {
    match flag.handling {
        Handling::Ignored(why) | Handling::Refused(why) => why.to_owned(),
        Handling::Supported | Handling::Alias(_) => String::new(),
    }
}

fn section(text: &mut String, title: &str, about: &str, which: fn(&Flag) -> bool, description: fn(&Flag) -> String) {
    text.push_str(&format!(
        "\n## {title}\n\n{about}\n\n| Flag | Default | Go managers | What |\n| --- | --- | --- | --- |\n"
    ));
    for flag in TABLE.iter().filter(|flag| which(flag)) {
        let owners: Vec<&str> = flag.owners.iter().copied().map(Owner::name).collect();
        let default = match (flag.default, flag.shape) {
            ("", _) => String::new(),
            (default, Shape::Switch | Shape::Text | Shape::List | Shape::Number | Shape::Span) => {
                format!("`{default}`")
            }
        };
        text.push_str(&format!(
            "| `--{}` | {default} | {} | {} |\n",
            flag.name,
            owners.join(", "),
            description(flag)
        ));
    }
}
