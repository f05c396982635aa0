//! The table as a page of the documentation.

use super::flag::{Fate, Flag, Owner, Shape};
use super::table::TABLE;
use super::variables::{VARIABLES, Variable};

/// `docs/flags.md`.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(
        "# Flags\n\nWritten by `cargo run -p xtask -- codegen` from the table in `crates/flags`. Do not edit.\n\n\
         `capm3 --controllers=ipam,capm3,hosts [FLAGS]`. Flags are spelled as in Go: one dash or two, `--flag value` or\n\
         `--flag=value`, `--switch` or `--switch=false`; lists are separated by commas. A flag of a Go manager that is\n\
         not in these tables is not known, and the program does not start with it.\n",
    );
    let taken = |flag: &Flag| matches!(flag.fate, Fate::Taken);
    section(&mut text, "Taken", "They do what they say.", taken, |flag| {
        flag.says.to_owned()
    });
    let means = |flag: &Flag| matches!(flag.fate, Fate::Means(_));
    section(
        &mut text,
        "Other names",
        "They mean another flag.",
        means,
        |flag| match flag.fate {
            Fate::Means(other) => format!("`--{other}`"),
            Fate::Taken | Fate::Ignored(_) | Fate::Refused(_) => String::new(),
        },
    );
    let ignored = |flag: &Flag| matches!(flag.fate, Fate::Ignored(_));
    section(
        &mut text,
        "Ignored",
        "They are accepted, do nothing, and the log says so.",
        ignored,
        reason,
    );
    let refused = |flag: &Flag| matches!(flag.fate, Fate::Refused(_));
    let why = "With a value other than the default the program does not start.";
    section(&mut text, "Refused", why, refused, reason);
    environment(&mut text);
    text
}

fn environment(text: &mut String) {
    text.push_str(
        "\n## Environment\n\nThe Go manager of hosts is told of Ironic by its environment, and so is `--controllers=hosts`. \
         A value that cannot\nbe used is named, with its cure, and the program does not start.\n\n\
         | Variable | Default | What |\n| --- | --- | --- |\n",
    );
    for Variable { name, default, says } in VARIABLES {
        let default = Some(default).filter(|default| !default.is_empty());
        let default = default.map(|default| format!("`{default}`")).unwrap_or_default();
        text.push_str(&format!("| `{name}` | {default} | {says} |\n"));
    }
    text.push_str(
        "\nThe Go manager of clusters and machines has one, and so has `--controllers=capm3`: with `CAPM3_FAST_TRACK=true`, and \
         no\nother word, a host that is given back stays powered on, so that it is cleaned and deployed without a reboot.\n",
    );
}

fn reason(flag: &Flag) -> String {
    match flag.fate {
        Fate::Ignored(why) | Fate::Refused(why) => why.to_owned(),
        Fate::Taken | Fate::Means(_) => String::new(),
    }
}

fn section(text: &mut String, title: &str, about: &str, which: fn(&Flag) -> bool, says: fn(&Flag) -> String) {
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
            says(flag)
        ));
    }
}
