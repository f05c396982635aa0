//! The section of docs/install.md about the operator: its commands, as the suite runs them.

use anyhow::{Context, ensure};

/// The heading of the section.
const HEADING: &str = "\n### By the Cluster API operator\n";
/// What the page says in place of the registry and the version of a run.
pub(super) const REGISTRY: &str = "registry.example";
pub(super) const VERSION: &str = "v1.15.0";

/// The commands of the section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commands {
    /// Installs the operator and the hosts.
    pub(super) operator: String,
    /// Creates namespaces, ConfigMaps and the artifact that providers are read from.
    pub(super) sources: String,
    /// Creates the providers.
    pub(super) providers: String,
    /// Waits for them.
    pub(super) ready: String,
    pub(super) upgrade: String,
    pub(super) delete: String,
}

impl Commands {
    pub(super) fn read(page: &str) -> anyhow::Result<Self> {
        let [operator, sources, providers, ready, upgrade, delete] = <[String; 6]>::try_from(blocks(page)?)
            .map_err(|blocks| anyhow::anyhow!("the section has six blocks of commands, not {}", blocks.len()))?;
        Ok(Self {
            operator,
            sources,
            providers,
            ready,
            upgrade,
            delete,
        })
    }
}

/// The blocks of commands in the section, up to the next heading.
fn blocks(page: &str) -> anyhow::Result<Vec<String>> {
    let section = page.split(HEADING).nth(1);
    let section = section.with_context(|| format!("the page has no section `{}`", HEADING.trim()))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let section = section.split("\n### ").next().unwrap_or_default();
    let blocks = section.split("\n```sh\n").skip(1);
    blocks
        .map(|block| {
            let (commands, _) = block.split_once("\n```").context("a block without an end")?;
            Ok(commands.to_owned())
        })
        .collect()
}

/// The commands with the registry and the version of this run.
pub(super) fn with(commands: &str, registry: &str, version: &str) -> anyhow::Result<String> {
    ensure!(!commands.trim().is_empty(), "a block without commands");
    Ok(commands.replace(REGISTRY, registry).replace(VERSION, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(blocks: &[&str]) -> String {
        let blocks: String = blocks
            .iter()
            .map(|block| format!("\ntext:\n\n```sh\n{block}\n```\n"))
            .collect();
        format!("# a\n\n```sh\nno\n```\n{HEADING}{blocks}\n### Other\n\n```sh\nno\n```\n")
    }

    #[test]
    fn commands_are_those_of_the_section() {
        let read = Commands::read(&page(&["a\nb", "c", "d", "e", "f", "g"])).unwrap();
        assert_eq!(read.operator, "a\nb");
        assert_eq!(read.delete, "g");
    }

    #[test]
    fn missing_block_or_section_is_an_error() {
        for (page, said) in [
            (page(&["a"]), "six blocks of commands, not 1"),
            ("# a\n".to_owned(), "no section"),
            (format!("{HEADING}\n```sh\na"), "without an end"),
        ] {
            let error = Commands::read(&page).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn next_version_is_not_replaced() {
        let commands = format!("push {REGISTRY}/a:{VERSION} v1.15.1");
        let replaced = with(&commands, "http://10.0.0.1:5000", "v1.15.0-dev").unwrap();
        assert_eq!(replaced, "push http://10.0.0.1:5000/a:v1.15.0-dev v1.15.1");
        assert!(with("\n", "a", "b").is_err());
    }

    #[test]
    fn page_of_this_checkout_has_the_commands() {
        let page = include_str!("../../../../docs/install.md");
        let commands = Commands::read(page).unwrap();
        for (block, has) in [
            (&commands.operator, "operator-components.yaml"),
            (&commands.sources, "create configmap"),
            (&commands.providers, "kind: InfrastructureProvider"),
            (&commands.ready, "condition=Ready"),
            (&commands.upgrade, crate::products::written::NEXT),
            (&commands.delete, "delete infrastructureprovider"),
        ] {
            assert!(block.contains(has), "{has}: {block}");
        }
        assert!(commands.sources.contains(VERSION) && commands.sources.contains(REGISTRY));
    }
}
