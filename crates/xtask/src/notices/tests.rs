use std::fs;

use metal3_files::workspace;

use super::*;

const MIT: &str = "Permission is hereby granted, free of charge";

/// The folder of a package with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("metal3-notices-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    folder
}

fn one(name: &str, licence: &str, files: &[(&str, &str)]) -> Result<Vec<Notice>> {
    let folder = folder(name, files);
    let package = (name.to_owned(), "1.0.0".to_owned());
    let licences = BTreeMap::from([(package.clone(), licence.to_owned())]);
    let found = of_packages(&licences, &BTreeMap::from([(package, Some(folder.clone()))]), "own");
    fs::remove_dir_all(&folder).unwrap();
    found
}

#[test]
fn every_package_of_the_program_is_named_with_a_text() {
    let root = workspace::root().unwrap();
    let text = of(&root).unwrap();
    let folders = folders(&root).unwrap();
    let (list, _) = text.split_once("\n======== Text 1 ").unwrap();
    for (package, licence) in Packages::released(&root).unwrap().licences {
        let line = format!("{} {}: {licence}; text", package.0, package.1);
        let is_own = folders[&package].is_none();
        assert_ne!(list.lines().any(|one| one.starts_with(&line)), is_own, "{line}");
        assert_eq!(package.0.starts_with("metal3-"), is_own, "{package:?}");
    }
    for library in &LIBRARIES {
        let is_named = list
            .lines()
            .any(|line| line.starts_with(library.name) && line.contains(library.licence));
        assert!(is_named && list.contains(library.about), "{}", library.name);
    }
    for part in [
        "Apache License",
        MIT,
        "GNU LESSER GENERAL PUBLIC LICENSE",
        "UNICODE LICENSE V3",
        "Regents of the University of California",
        "The Rust Project Developers",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(of(&root).unwrap(), text, "the same packages have the same text");
    assert!(!text.contains(&root.display().to_string()), "the text names the folder");
}

#[test]
fn package_without_a_text_is_named() {
    let error = one("bare", "MIT", &[("README.md", MIT), ("src/license.rs", "fn f() {}")])
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "no text of the licence of bare 1.0.0 (MIT)");
    let error = one("empty", "MIT", &[("LICENSE", "\n")]).err().unwrap().to_string();
    assert!(error.contains("empty 1.0.0"), "{error}");
    let unknown = BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), "MIT".to_owned())]);
    let error = of_packages(&unknown, &BTreeMap::new(), "own")
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("where a 1.0.0 is"), "{error}");
}

#[test]
fn licence_of_the_project_stands_for_a_missing_text_where_it_is_offered() {
    for (licence, is_met) in [
        ("Apache-2.0", true),
        ("MIT OR Apache-2.0", true),
        ("MIT/Apache-2.0", true),
        ("MIT", false),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("Apache-2.0 AND ISC", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
    ] {
        let found = one("offered", licence, &[]).map(|notices| notices[0].texts.clone());
        assert_eq!(found.ok(), is_met.then(|| vec!["own".to_owned()]), "{licence}");
    }
}

#[test]
fn texts_are_those_of_all_files_about_licences() {
    let files = [
        ("LICENSE-MIT", "mit \r\n\r\nend\r\n"),
        ("COPYING", "copying\n"),
        ("UNLICENSE", "free"),
        (".licenses/Author-MIT", "of another"),
        ("src/part/LICENCE.md", "of a part"),
        ("notes.txt", "none"),
        ("src/license.rs", "none"),
    ];
    let found = one("several", "MIT", &files).unwrap();
    assert_eq!(
        found[0].texts,
        ["of another", "copying", "mit\n\nend", "free", "of a part"]
    );
}

#[test]
fn each_text_is_written_once() {
    let notice = |name: &str, about: &'static str, texts: &[&str]| Notice {
        name: name.to_owned(),
        licence: "MIT".to_owned(),
        about,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
    };
    let text = written(&[
        notice("a 1", "", &["x\n"]),
        notice("b 2", "", &["y", "x"]),
        notice("c", "There.", &[]),
    ]);
    assert_eq!(
        text.split_once("list.\n\n").unwrap().1,
        "a 1: MIT; text 1\nb 2: MIT; texts 2, 1\nc: MIT\n    There.\n\n\
         ======== Text 1 ========\n\nx\n\n======== Text 2 ========\n\ny\n"
    );
}
