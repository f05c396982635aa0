//! The commands of a page of the documentation, which run as they are written.

use anyhow::{Context as _, ensure};

/// The blocks of a shell below a heading, in their order.
pub(crate) fn blocks<'a>(page: &'a str, heading: &str) -> anyhow::Result<Vec<&'a str>> {
    let title = format!("\n## {heading}\n");
    let (_, rest) = page
        .split_once(&title)
        .with_context(|| format!("no section {heading:?}"))?;
    let (section, _) = rest.split_once("\n## ").unwrap_or((rest, ""));
    let found = section.split("```sh\n").skip(1);
    let found: Vec<&str> = found
        .filter_map(|after| after.split_once("\n```").map(|(block, _)| block))
        .collect();
    ensure!(!found.is_empty(), "no commands in the section {heading:?}");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# Page\n\n## One\n\n```sh\na\nb\n```\n\ntext\n\n```yaml\nno: 1\n```\n\n```sh\nc\n```\n\n## Two\n\ntext\n";

    #[test]
    fn blocks_are_those_of_the_section_and_of_a_shell() {
        assert_eq!(blocks(PAGE, "One").unwrap(), ["a\nb", "c"]);
    }

    #[test]
    fn section_without_commands_is_an_error() {
        assert!(blocks(PAGE, "Two").is_err() && blocks(PAGE, "Three").is_err());
    }
}
