//! The licences of all that is in the released program, as one text: in the release, in each image, and in the archives of the
//! plugin.
//!
//! The texts are those that the packages come with, so they depend on the lock file alone. What is not linked as a package has its text
//! next to this file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use metal3_files::documents;

use crate::files::files_below;
use crate::packages::{Package, Packages, folders};

/// The name of the file.
pub(crate) const FILE: &str = "NOTICES.txt";

/// The licence of the project.
const OWN: &str = "Apache-2.0";

/// What the linker adds to the packages.
pub(crate) struct Library {
    pub(crate) name: &'static str,
    pub(crate) licence: &'static str,
    /// Whether it comes with the compiler, and has its version.
    pub(crate) is_of_compiler: bool,
    /// What else is to be said, such as where its source is.
    pub(crate) about: &'static str,
    texts: &'static [&'static str],
}

pub(crate) const LIBRARIES: [Library; 3] = [
    Library {
        name: "rust-std",
        licence: "MIT OR Apache-2.0",
        is_of_compiler: true,
        about: "The standard library of the compiler that the label metal3-rs/compiler of the image names. Its source is the folder `library` of \
                https://github.com/rust-lang/rust at the tag of that version.",
        texts: &[include_str!("rust-std.txt")],
    },
    Library {
        name: "glibc",
        licence: "LGPL-2.1-or-later",
        is_of_compiler: false,
        about: "The GNU C Library, linked statically, as the distribution has it. The program contains its version as a text: `strings capm3 | grep \
                'GNU C Library'`. Its source is the package glibc of the distribution in that text (https://snapshot.debian.org/package/glibc, \
                https://launchpad.net/ubuntu/+source/glibc), and https://ftp.gnu.org/gnu/glibc. The source of the program, whose address is \
                the label org.opencontainers.image.source of its image, links with another version by `make program` on a machine that has it. The \
                first text is that of the distribution's package, which names an older version than it has.",
        texts: &[include_str!("glibc.txt"), include_str!("lgpl-2.1.txt")],
    },
    Library {
        name: "libgcc",
        licence: "GPL-3.0-or-later WITH GCC-exception-3.1",
        is_of_compiler: false,
        about: "The part of GCC that each program has which it links. The exception permits to distribute the whole under terms of \
                one's choice. Its source is the package gcc of the same distribution, and https://ftp.gnu.org/gnu/gcc.",
        texts: &[],
    },
];

/// One line of the list, with the texts of its licence.
struct Notice {
    name: String,
    licence: String,
    about: &'static str,
    texts: Vec<String>,
}

/// The text for the packages of a checkout. The error names those that have no text.
pub(crate) fn of(root: &Path) -> Result<String> {
    let own = documents::text(&root.join("LICENSE"))?;
    let mut notices = vec![Notice {
        name: "the program and its packages metal3-*".to_owned(),
        licence: OWN.to_owned(),
        about: "",
        texts: vec![own.clone()],
    }];
    notices.extend(of_packages(&Packages::released(root)?.licences, &folders(root)?, &own)?);
    notices.extend(LIBRARIES.iter().map(|library| Notice {
        name: library.name.to_owned(),
        licence: library.licence.to_owned(),
        about: library.about,
        texts: library.texts.iter().map(|text| (*text).to_owned()).collect(),
    }));
    Ok(written(&notices))
}

/// Those of the packages that are not of the project.
fn of_packages(
    licences: &BTreeMap<Package, String>,
    folders: &BTreeMap<Package, Option<PathBuf>>,
    own: &str,
) -> Result<Vec<Notice>> {
    let (mut notices, mut missing) = (Vec::new(), Vec::new());
    for (package, licence) in licences {
        let name = format!("{} {}", package.0, package.1);
        let folder = folders.get(package);
        let Some(folder) = folder.with_context(|| format!("cargo does not say where {name} is"))? else {
            continue;
        };
        let mut texts = texts(folder)?;
        if texts.is_empty() && is_met_by_own(licence) {
            texts.push(own.to_owned());
        }
        if texts.is_empty() {
            missing.push(format!("{name} ({licence})"));
        }
        notices.push(Notice {
            name,
            licence: licence.clone(),
            about: "",
            texts,
        });
    }
    ensure!(missing.is_empty(), "no text of the licence of {}", missing.join(", "));
    Ok(notices)
}

/// The texts in the files of a package that are about its licences, those of parts included.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut files = files_below(folder)?;
    files.retain(|file| is_about_licences(file));
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        let lines = documents::text(&file)?;
        let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
        texts.push(lines.join("\n").trim_matches('\n').to_owned());
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

fn is_about_licences(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_source = file.extension().is_some_and(|ending| ending == "rs");
    let starts = ["licen", "unlicen", "copying", "copyright", "notice"];
    // Some packages have the texts of others in a folder of their own.
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    let folder = folder.to_string_lossy().to_lowercase();
    let is_in_folder = folder.trim_start_matches('.').starts_with("licen");
    !is_source && (is_in_folder || starts.iter().any(|start| name.starts_with(start)))
}

/// Whether the licence of the project is one of the alternatives.
fn is_met_by_own(licence: &str) -> bool {
    let is_list = !licence.contains(['(', ')']) && !licence.contains(" AND ");
    is_list
        && licence
            .split(" OR ")
            .flat_map(|one| one.split('/'))
            .any(|one| one.trim() == OWN)
}

/// The number of a text, which it gets when it is new.
fn place<'a>(texts: &mut Vec<&'a str>, text: &'a str) -> usize {
    if let Some(at) = texts.iter().position(|known| *known == text) {
        return at + 1;
    }
    texts.push(text);
    texts.len()
}

/// The list, and then each text once.
fn written(notices: &[Notice]) -> String {
    let mut all: Vec<&str> = Vec::new();
    let mut list = String::new();
    for notice in notices {
        let places = notice.texts.iter().map(|text| place(&mut all, text.trim_matches('\n')));
        let found: Vec<String> = places.map(|place| place.to_string()).collect();
        let texts = match found.as_slice() {
            [] => String::new(),
            [one] => format!("; text {one}"),
            several => format!("; texts {}", several.join(", ")),
        };
        // Writing to a String cannot fail.
        let _written = writeln!(list, "{}: {}{texts}", notice.name, notice.licence);
        if !notice.about.is_empty() {
            let _written = writeln!(list, "    {}", notice.about);
        }
    }
    let texts = all.iter().enumerate();
    let texts: String = texts
        .map(|(at, text)| format!("\n======== Text {} ========\n\n{text}\n", at + 1))
        .collect();
    format!("What is in the program capm3, with its licences. The texts follow the list.\n\n{list}{texts}")
}

#[cfg(test)]
mod tests;
