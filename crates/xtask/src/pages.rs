//! Sections of pages that are generated; the rest of the page is kept: the *Rules* of `docs/controllers/KIND.md` from the
//! rule tables, and the examples of `docs/why.md` and `docs/kubectl-metal3.md` from their objects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use metal3_api::catalog;
use metal3_api::rules::{Reviewer, Row};

const RULES: Marks = Marks {
    begin: "<!-- rules: written by xtask codegen -->",
    end: "<!-- end of rules -->",
};
const EXAMPLE: Marks = Marks {
    begin: "<!-- example: written by xtask codegen from crates/explain/src/example.json -->",
    end: "<!-- end of the example -->",
};

const EXAMPLES: Marks = Marks {
    begin: "<!-- examples: written by xtask codegen from crates/explain/src/example.json -->",
    end: "<!-- end of the examples -->",
};

/// The lines around a generated section.
struct Marks {
    begin: &'static str,
    end: &'static str,
}

/// The page about `why`, with the output of its example.
pub(crate) fn why(path: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let page = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let section = format!(
        "```text\n$ kubectl metal3 why cluster/edge -n lab\n{}```\n",
        metal3_explain::example::output()
    );
    let page = with_section(&page, &EXAMPLE, &section).with_context(|| format!("in {}", path.display()))?;
    Ok(BTreeMap::from([(path.to_owned(), page)]))
}

/// The page about the plugin, with the outputs of its examples.
pub(crate) fn plugin(path: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let page = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let examples = metal3_explain::example::outputs().into_iter();
    let examples = examples.map(|(words, output)| format!("$ kubectl metal3 {words} -n lab\n{output}"));
    let section = format!("```text\n{}```\n", examples.collect::<Vec<_>>().join("\n"));
    let page = with_section(&page, &EXAMPLES, &section).with_context(|| format!("in {}", path.display()))?;
    Ok(BTreeMap::from([(path.to_owned(), page)]))
}

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
            let page =
                with_section(&page, &RULES, &section(reviewer)).with_context(|| format!("in {}", path.display()))?;
            Ok((path, page))
        })
        .collect()
}

fn blank(reviewer: &Reviewer) -> String {
    format!(
        "# {}\n\n`{}/{}`, `{}`.\n\n{}\n{}\n",
        reviewer.kind, reviewer.group, reviewer.version, reviewer.plural, RULES.begin, RULES.end
    )
}

/// The page with its section replaced.
fn with_section(page: &str, marks: &Marks, section: &str) -> Result<String> {
    let Marks { begin, end } = marks;
    let Some((before, rest)) = page.split_once(begin) else {
        bail!("the line `{begin}` is missing; put it and `{end}` where the section belongs");
    };
    let Some((_, after)) = rest.split_once(end) else {
        bail!("the line `{end}` is missing after `{begin}`");
    };
    Ok(format!("{before}{begin}\n{section}{end}{after}"))
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
        let Marks { begin, end } = RULES;
        let page = format!("# Kind\n\nWords.\n\n{begin}\nold\n{end}\n\nMore words.\n");
        let page = with_section(&page, &RULES, "new\n").unwrap();
        assert_eq!(
            page,
            format!("# Kind\n\nWords.\n\n{begin}\nnew\n{end}\n\nMore words.\n")
        );
        assert_eq!(with_section(&page, &RULES, "new\n").unwrap(), page);
    }

    #[test]
    fn a_page_without_the_marks_is_an_error() {
        assert!(
            with_section("# Kind\n", &RULES, "new")
                .unwrap_err()
                .to_string()
                .contains("rules")
        );
    }
}
