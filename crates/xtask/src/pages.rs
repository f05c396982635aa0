//! The section *Rules* of `docs/controllers/KIND.md`, generated from the rule tables. The rest of the page is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use metal3_api::catalog;
use metal3_api::rules::{Reviewer, Row};

const BEGIN: &str = "<!-- rules: written by xtask codegen -->";
const END: &str = "<!-- end of rules -->";

/// Desired pages of all kinds with rules.
pub(crate) fn wanted(folder: &Path) -> Result<BTreeMap<PathBuf, String>> {
    catalog::reviewers()
        .iter()
        .map(|reviewer| {
            let path = folder.join(format!("{}.md", reviewer.kind.to_lowercase()));
            let page = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => blank(reviewer),
                Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
            };
            let page = with_section(&page, &section(reviewer)).with_context(|| format!("in {}", path.display()))?;
            Ok((path, page))
        })
        .collect()
}

fn blank(reviewer: &Reviewer) -> String {
    format!(
        "# {}\n\n`{}/{}`, `{}`.\n\n{BEGIN}\n{END}\n",
        reviewer.kind, reviewer.group, reviewer.version, reviewer.plural
    )
}

/// The page with its section of rules replaced.
fn with_section(page: &str, section: &str) -> Result<String> {
    let Some((before, rest)) = page.split_once(BEGIN) else {
        bail!("the line `{BEGIN}` is missing; put it and `{END}` where the rules belong");
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("the line `{END}` is missing after `{BEGIN}`");
    };
    Ok(format!("{before}{BEGIN}\n{section}{END}{after}"))
}

fn section(reviewer: &Reviewer) -> String {
    let mut text = String::from("## Rules\n\n| Rule | When | What |\n| --- | --- | --- |\n");
    for Row {
        name,
        when,
        description,
        differs,
    } in (reviewer.rows)()
    {
        let difference = differs
            .map(|row| format!(" *Differs: [{row}](../parity.md).*"))
            .unwrap_or_default();
        text.push_str(&format!(
            "| `{name}` | {when} | {}{difference} |\n",
            description.replace('|', "\\|")
        ));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_outside_the_section_is_kept() {
        let page = format!("# Kind\n\nWords.\n\n{BEGIN}\nold\n{END}\n\nMore words.\n");
        let page = with_section(&page, "new\n").unwrap();
        assert_eq!(
            page,
            format!("# Kind\n\nWords.\n\n{BEGIN}\nnew\n{END}\n\nMore words.\n")
        );
        assert_eq!(with_section(&page, "new\n").unwrap(), page);
    }

    #[test]
    fn a_page_without_the_marks_is_an_error() {
        assert!(
            with_section("# Kind\n", "new")
                .unwrap_err()
                .to_string()
                .contains("rules")
        );
    }
}
