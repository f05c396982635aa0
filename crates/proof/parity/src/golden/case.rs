//! Recorded cases.
//!
//! Each folder below the given one is a group, or the given folder is; each of its files is a list of cases. The group
//! defines the content of `input` and `expect`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use metal3_files::documents;

/// Recordings of running managers next to the cases; they are replayed elsewhere.
const RECORDINGS: [&str; 2] = ["adoption", "providers"];

/// One recorded answer.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// Its folder.
    pub(super) group: String,
    /// Its file, without extension.
    pub(super) file: String,
    /// Name, unique in its file.
    pub(super) name: String,
    /// Recorded input.
    pub(super) input: Value,
    /// Recorded answer of upstream.
    pub(super) expect: Value,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    input: Value,
    expect: Value,
}

impl Case {
    /// Group, file and name.
    pub(super) fn label(&self) -> String {
        format!("{}/{} {}", self.group, self.file, self.name)
    }
}

/// Reads the cases below a folder, and the names of skipped recordings.
pub(super) fn read(folder: &Path) -> Result<(Vec<Case>, Vec<String>)> {
    let mut cases = Vec::new();
    let mut recordings = Vec::new();
    for path in documents::files(folder, &["yaml", "yml"])? {
        let group = group_of(&path, folder)?;
        if RECORDINGS.contains(&group.as_str()) {
            if !recordings.contains(&group) {
                recordings.push(group);
            }
            continue;
        }
        let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let file = file.unwrap_or_default();
        cases.extend(
            parse(&documents::text(&path)?, &group, &file).with_context(|| format!("read {}", path.display()))?,
        );
    }
    Ok((cases, recordings))
}

/// First folder below the given one, or the given one itself.
fn group_of(path: &Path, folder: &Path) -> Result<String> {
    let below = path.strip_prefix(folder)?.parent().unwrap_or(Path::new(""));
    let first = below.components().next().map(|part| part.as_os_str().to_owned());
    let own = folder.canonicalize()?.file_name().map(ToOwned::to_owned);
    let name = first.or(own).context("the folder has no name")?;
    Ok(name.to_string_lossy().into_owned())
}

fn parse(text: &str, group: &str, file: &str) -> Result<Vec<Case>> {
    let entries: Vec<Entry> = serde_saphyr::from_str(text)?;
    for (index, entry) in entries.iter().enumerate() {
        if entries.iter().take(index).any(|other| other.name == entry.name) {
            bail!("the case {} stands twice", entry.name);
        }
    }
    let case = |entry: Entry| Case {
        group: group.to_owned(),
        file: file.to_owned(),
        name: entry.name,
        input: entry.input,
        expect: entry.expect,
    };
    Ok(entries.into_iter().map(case).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_a_file_have_unique_names() {
        let text = "- { name: a, why: w, level: api, input: { x: 1 }, expect: { y: 2 } }\n";
        let cases = parse(text, "g", "f").unwrap();
        assert_eq!(cases.iter().map(Case::label).collect::<Vec<_>>(), ["g/f a"]);
        assert!(
            parse(&text.repeat(2), "g", "f")
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
        assert!(
            parse("- { name: a, expect: {} }", "g", "f").is_err(),
            "a case without input"
        );
    }

    #[test]
    fn the_group_is_the_first_folder_or_the_given_one() {
        let here = Path::new(".");
        assert_eq!(group_of(&here.join("src/golden/x.yaml"), here).unwrap(), "src");
        assert_eq!(group_of(&here.join("src/x.yaml"), &here.join("src")).unwrap(), "src");
    }
}
