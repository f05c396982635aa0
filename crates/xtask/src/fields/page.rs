//! `docs/fields.md`: a table for each subject, with a line for each row.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::keys::SUBJECTS;
use super::rows::Row;
use super::{ROWS, Table};

/// The page.
pub(crate) fn text(table: &Table<'_>, rows: &[Row], status: usize) -> String {
    let mut text = format!(
        "# Fields, keys, flags, variables and metrics\n\nWritten by `cargo run --bin xtask -- fields` from the schemas, the source and the rows in \
         `{ROWS}`. Do not edit.\n\nMembers of equal paths in several versions are one, and `spec.template.spec` of a template \
         is the `spec` of the objects made from it.\nA member that has members is not listed, its members are. `(a|b)` is either, `**` all \
         members below. The {status} members of `status` are\nnot listed, because controllers write them.\n\n\
         | Class | Number | Meaning |\n| --- | --- | --- |\n"
    );
    for (class, count) in table.counts(rows) {
        push(
            &mut text,
            format_args!("| {} | {count} | {} |\n", class.name(), class.meaning()),
        );
    }
    let mut subjects: BTreeMap<(usize, &str), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        // Kinds come first.
        let place = SUBJECTS.iter().position(|subject| *subject == row.subject);
        let place = place.map_or(0, |place| place + 1);
        subjects.entry((place, &row.subject)).or_default().push(row);
    }
    for ((_, subject), rows) in subjects {
        section(&mut text, subject, &rows);
    }
    text
}

fn section(text: &mut String, subject: &str, rows: &[&Row]) {
    push(
        text,
        format_args!("\n## {subject}\n\n| What | Class | How, or where | Test |\n| --- | --- | --- | --- |\n"),
    );
    for row in rows {
        let at: Vec<String> = row
            .patterns
            .iter()
            .map(|pattern| format!("`{}`", escaped(pattern.text())))
            .collect();
        let tests: Vec<String> = row.tests.iter().map(|test| format!("`{test}`")).collect();
        push(
            text,
            format_args!(
                "| {} | {} | {} | {} |\n",
                at.join(", "),
                row.class.name(),
                escaped(&row.how),
                tests.join(", ")
            ),
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a text does not fail.
    text.write_fmt(line).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fields::rows;

    #[test]
    fn kinds_come_first_and_bars_are_escaped() {
        let rows = rows::parse("Flags:\n- { at: v, acts: 'api::x' }\nKind:\n- { at: 'spec.(a|b)', unread: a place }\n")
            .unwrap();
        let entries = BTreeSet::new();
        let page = text(&Table::new(&entries, &rows), &rows, 3);
        let (kind, flags) = (page.find("## Kind").unwrap(), page.find("## Flags").unwrap());
        assert!(kind < flags);
        assert!(
            page.contains("| `spec.(a\\|b)` | read by no controller | a place |  |"),
            "{page}"
        );
    }
}
