//! The pages of `docs/runbooks`, from the table. `xtask codegen` writes them.

use crate::table::{Actor, Area, Entry, Row};

const NOTE: &str = "<!-- Written by `cargo run -p xtask -- codegen` from crates/explain/src/table. Do not edit. -->";

/// Each page with the name of its file.
#[must_use]
pub fn pages() -> Vec<(String, String)> {
    let of_area = |area: Area| (format!("{}.md", area.page()), page(area));
    let mut pages: Vec<_> = Area::ALL.into_iter().map(of_area).collect();
    pages.push(("README.md".to_owned(), index()));
    pages
}

fn index() -> String {
    let mut text = format!(
        "# Runbooks\n\n{NOTE}\n\nWhat each reason of a condition, an Event or a wait means, who has to act, and what to do. \
         `kubectl metal3 why KIND/NAME` follows the reasons from an object to the last one and names its section here \
         ([why](../why.md)). \
         [alerts.md](alerts.md) has a section for each alert.\n\n| Page | Reasons |\n| --- | --- |\n"
    );
    for area in Area::ALL {
        text.push_str(&format!(
            "| [{}]({}.md) | {} |\n",
            area.kinds(),
            area.page(),
            area.rows().len()
        ));
    }
    let mut entries: Vec<Entry> = Area::ALL
        .into_iter()
        .flat_map(|area| area.rows().iter().map(move |row| Entry { area, row }))
        .filter(|entry| entry.row.actor != Actor::Nothing)
        .collect();
    entries.sort_by_key(|entry| (entry.row.reason.to_ascii_lowercase(), entry.area));
    text.push_str(
        "\n## Reasons that ask for something\n\n| Reason | Kind | What | Who acts |\n| --- | --- | --- | --- |\n",
    );
    for Entry { area, row } in entries {
        text.push_str(&format!(
            "| [`{}`]({}.md#{}) | {} | {} | {} |\n",
            row.reason,
            area.page(),
            row.reason.to_ascii_lowercase(),
            area.kinds(),
            row.title,
            row.actor.as_str()
        ));
    }
    text
}

fn page(area: Area) -> String {
    let sections: Vec<String> = area.rows().iter().map(section).collect();
    format!(
        "# Runbook: {}\n\n{NOTE}\n\n[All runbooks](README.md)\n\n{}",
        area.kinds(),
        sections.join("\n")
    )
}

fn section(row: &Row) -> String {
    let Row {
        reason,
        title,
        meaning,
        cure,
        actor,
        severity,
    } = row;
    let head = format!("## {reason}\n\n**{title}.** {meaning}\n");
    match actor {
        Actor::Nothing => head,
        _ => format!(
            "{head}\n- Who acts: {} ({})\n- What to do: {cure}\n",
            actor.as_str(),
            severity.as_str()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_section_under_the_anchor_that_its_entry_names() {
        let pages = pages();
        for area in Area::ALL {
            for row in area.rows() {
                let runbook = Entry { area, row }.runbook();
                let (file, anchor) = runbook.split_once('#').unwrap();
                let name = file.strip_prefix("docs/runbooks/").unwrap();
                let (_, page) = pages.iter().find(|(page, _)| page == name).unwrap();
                let heads = page.lines().filter_map(|line| line.strip_prefix("## "));
                assert_eq!(
                    heads.filter(|head| head.to_lowercase() == anchor).count(),
                    1,
                    "{runbook}"
                );
            }
        }
    }

    #[test]
    fn section_of_a_wait_says_who_acts_and_what_to_do() {
        let entry = Area::Addresses.find("PoolExhausted").unwrap();
        let section = section(entry.row);
        assert!(
            section.contains("- Who acts: user (error)\n- What to do: Add a range"),
            "{section}"
        );
        let done = Area::Shared.find("Ready").unwrap();
        assert!(!super::section(done.row).contains("What to do"));
    }
}
