//! The section *Rules* of `docs/controllers/KIND.md`, rendered from the rule tables. What people wrote around it stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use metal3_api::catalog;
use metal3_api::rules::{Reviewer, Row};

const BEGIN: &str = "<!-- rules: written by xtask codegen -->";
const END: &str = "<!-- end of rules -->";

/// Pages of all kinds with rules, as they should be.
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
            let page = renewed(&page, &section(reviewer)).with_context(|| format!("in {}", path.display()))?;
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
fn renewed(page: &str, section: &str) -> Result<String> {
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
        says,
        differs,
    } in (reviewer.rows)()
    {
        let difference = differs
            .map(|row| format!(" *Differs: [{row}](../parity.md).*"))
            .unwrap_or_default();
        text.push_str(&format!(
            "| `{name}` | {when} | {}{difference} |\n",
            says.replace('|', "\\|")
        ));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_around_the_rules_stays() {
        let page = format!("# Kind\n\nWords.\n\n{BEGIN}\nold\n{END}\n\nMore words.\n");
        let page = renewed(&page, "new\n").unwrap();
        assert_eq!(
            page,
            format!("# Kind\n\nWords.\n\n{BEGIN}\nnew\n{END}\n\nMore words.\n")
        );
        assert_eq!(renewed(&page, "new\n").unwrap(), page);
    }

    #[test]
    fn a_page_without_a_place_for_its_rules_is_an_error_that_says_so() {
        assert!(renewed("# Kind\n", "new").unwrap_err().to_string().contains("rules"));
    }
}
