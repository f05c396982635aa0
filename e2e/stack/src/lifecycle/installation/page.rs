//! The part of docs/install.md with what wrong inputs look like, between two marks.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};

const BEGIN: &str = "<!-- wrong inputs: begin (make e2e-install WRITE=1) -->";
const END: &str = "<!-- wrong inputs: end -->";

/// A wrong input: what was typed, what was seen, and what to do.
pub(super) struct Entry {
    pub(super) title: &'static str,
    pub(super) seen: Vec<(String, String)>,
    pub(super) remedy: String,
}

pub(super) struct Page {
    path: PathBuf,
    is_written: bool,
}

impl Page {
    pub(super) fn new(path: PathBuf, is_written: bool) -> anyhow::Result<Self> {
        let page = Self { path, is_written };
        page.parts().map(|_| page)
    }

    /// The page before, between and after the marks.
    fn parts(&self) -> anyhow::Result<(String, String, String)> {
        let text = fs::read_to_string(&self.path).with_context(|| format!("reading {}", self.path.display()))?;
        let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
            let (between, after) = rest.split_once(END)?;
            Some((before.to_owned(), between.to_owned(), after.to_owned()))
        });
        parts.with_context(|| format!("{} has not the lines {BEGIN} and {END}", self.path.display()))
    }

    /// Compares what was seen with the page, or writes it in place of what the page has about this input.
    pub(super) fn add(&self, entry: &Entry) -> anyhow::Result<()> {
        let text = shown(entry);
        let (before, there, after) = self.parts()?;
        if self.is_written {
            let text = format!(
                "{before}{BEGIN}{}{END}{after}",
                replaced(&there, &heading(entry), &text)
            );
            return fs::write(&self.path, text).with_context(|| format!("writing {}", self.path.display()));
        }
        ensure!(
            there.contains(&text),
            "{} does not have this, `make e2e-install WRITE=1` writes it:\n{text}",
            self.path.display()
        );
        Ok(())
    }
}

fn heading(entry: &Entry) -> String {
    format!("\n### {}\n", entry.title)
}

/// The sections with this one in place of that with its heading, or at the end.
fn replaced(sections: &str, heading: &str, text: &str) -> String {
    let Some((before, rest)) = sections.split_once(heading) else {
        return format!("{sections}{text}");
    };
    let others = rest.find("\n### ").and_then(|at| rest.get(at..)).unwrap_or_default();
    format!("{before}{text}{others}")
}

fn shown(entry: &Entry) -> String {
    let mut text = format!("{}\n```text\n", heading(entry));
    let seen: Vec<String> = entry
        .seen
        .iter()
        .map(|(typed, seen)| format!("$ {typed}\n{}\n", seen.trim_end()))
        .collect();
    text += &seen.join("\n");
    text += &format!("```\n\n{}\n", entry.remedy);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seen: &str) -> Entry {
        Entry {
            title: "No x",
            seen: vec![("get x".to_owned(), format!("{seen}\n\n"))],
            remedy: "Install x.".to_owned(),
        }
    }

    #[test]
    fn what_was_seen_is_compared_or_written() {
        let path = std::env::temp_dir().join(format!("stack-page-{}", std::process::id()));
        fs::write(&path, format!("a\n{BEGIN}\n{END}\nb\n")).unwrap();
        let page = |is_written| Page::new(path.clone(), is_written).unwrap();
        assert!(page(false).add(&entry("none")).is_err(), "the page does not have it");
        let written = page(true);
        written.add(&entry("none")).unwrap();
        let other = Entry {
            title: "No y",
            ..entry("no y")
        };
        written.add(&other).unwrap();
        written.add(&entry("none")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("a\n") && text.ends_with("\nb\n"), "{text}");
        assert!(
            text.contains("\n### No x\n\n```text\n$ get x\nnone\n```\n\nInstall x.\n"),
            "{text}"
        );
        page(false).add(&entry("none")).unwrap();
        assert!(page(false).add(&entry("other")).is_err());
        fs::write(&path, "a").unwrap();
        assert!(Page::new(path.clone(), true).is_err(), "a page without marks");
        fs::remove_file(&path).unwrap();
    }
}
