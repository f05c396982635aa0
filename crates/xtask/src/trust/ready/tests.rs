use std::collections::BTreeSet;

use super::*;
use crate::images::stand_in;

type Change = fn(&mut Facts);

fn installed(image: &str) -> Installed {
    Installed::from([(image.to_owned(), BTreeSet::from(["a.yaml".to_owned()]))])
}

fn ready() -> Facts {
    let parts = ["infrastructure-metal3", "ipam-metal3", "metal3.yaml"];
    let archives = ARCHITECTURES.map(|one| plugin::name("v1.15.0", one)).to_vec();
    Facts {
        head: "c0ffee".to_owned(),
        version: "v1.15.0".to_owned(),
        changelog: "# Changes\n\n## v1.15.0\n\n- `metal3.io_baremetalhosts` has a field more\n\n## v1.14.9\n\nold\n"
            .to_owned(),
        tag: "v1.15.0".to_owned(),
        digest: "sha256:ab".to_owned(),
        revision: "c0ffee".to_owned(),
        source: "https://git.example/metal3".to_owned(),
        parts: parts.map(|part| (part.to_owned(), vec!["v1.15.0".to_owned()])).into(),
        archives: (archives.clone(), archives),
        architectures: ARCHITECTURES.map(str::to_owned).to_vec(),
        url: Some("https://a.example/v1.15.0/kubectl-metal3_v1.15.0_linux_amd64.tar.gz".to_owned()),
        has_notices: true,
        installed: installed("registry.example/capm3@sha256:ab"),
        previous: Some("0ddba11".to_owned()),
        upgraded: Some("0ddba11c".to_owned()),
        definitions: vec!["metal3.io_baremetalhosts".to_owned()],
        ..Facts::default()
    }
}

#[test]
fn nothing_keeps_a_complete_release_back() {
    assert_eq!(problems(&ready()), Vec::<String>::new());
    let mut named = ready();
    "v1.15.0".clone_into(&mut named.wanted);
    assert_eq!(problems(&named), Vec::<String>::new());
}

/// Each change, with a part of what is said of it.
fn each_is_named(cases: &[(&str, Change)]) {
    for (wanted, change) in cases {
        let mut facts = ready();
        change(&mut facts);
        let found = problems(&facts);
        assert!(
            found.iter().any(|problem| problem.contains(wanted)),
            "{wanted}: {found:?}"
        );
    }
}

#[test]
fn version_and_images_that_keep_a_release_back_are_named() {
    each_is_named(&[
        ("not committed: README.md", |facts| {
            facts.changed = "README.md".to_owned()
        }),
        ("set PLUGIN_URL to a URL with /v1.15.0", |facts| {
            facts.url = Some("https://a.example/v1.14.0/kubectl-metal3_v1.15.0.tar.gz".to_owned());
        }),
        ("set CAPM3_PATCH", |facts| "v1.15.0-dev".clone_into(&mut facts.version)),
        ("this is v1.15.0, not v1.14.3", |facts| {
            facts.wanted = "v1.14.3".to_owned()
        }),
        ("no section `## v1.15.1`", |facts| {
            "v1.15.1".clone_into(&mut facts.version)
        }),
        ("the images are of v1.14.0", |facts| {
            "v1.14.0".clone_into(&mut facts.tag)
        }),
        ("the images were built from c0ffee-dirty, and this is c0ffee", |facts| {
            facts.revision.push_str("-dirty");
        }),
        (
            "the images were built from c0ffee-dev, and this is c0ffee: run `make images`",
            |facts| facts.revision.push_str("-dev"),
        ),
        ("the images are for [amd64], not for [amd64, arm64]", |facts| {
            facts.architectures.truncate(1);
        }),
        ("the images are for [arm64, amd64], not for [amd64, arm64]", |facts| {
            facts.architectures.reverse();
        }),
        ("the images were built from bad, and this is c0ffee", |facts| {
            "bad".clone_into(&mut facts.revision);
        }),
    ]);
}

#[test]
fn files_and_changes_that_keep_a_release_back_are_named() {
    each_is_named(&[
        ("metal3-rs-1.15.0.tgz has other files", |facts| {
            facts.packaged = Some("metal3-rs-1.15.0.tgz has other files than metal3-rs".to_owned());
        }),
        ("the images name no source: set SOURCE", |facts| {
            NO_SOURCE.clone_into(&mut facts.source);
        }),
        ("ipam-metal3 has v1.14.0, v1.15.0", |facts| {
            facts
                .parts
                .get_mut("ipam-metal3")
                .unwrap()
                .insert(0, "v1.14.0".to_owned());
        }),
        ("metal3.yaml has nothing, not v1.15.0", |facts| {
            facts.parts.get_mut("metal3.yaml").unwrap().clear();
        }),
        (
            "the archives of the plugin are [], not [kubectl-metal3_v1.15.0",
            |facts| {
                facts.archives.1.clear();
            },
        ),
        (
            "./password is no file of a release: empty RELEASE and run `make release chart plugin`",
            |facts| facts.others.push("./password is no file of a release".to_owned()),
        ),
        ("a.yaml installs registry.example/capm3@sha256:ab", |facts| {
            "sha256:cd".clone_into(&mut facts.digest)
        }),
        ("no manifest installs an image", |facts| facts.installed.clear()),
        ("CHANGELOG.md has v1.14.9, and docs/releasing.md says", |facts| {
            facts.previous = None;
        }),
        (
            "says `Previous release: 0ddba11`, and `Upgraded from: 415b2030`: write",
            |facts| facts.upgraded = Some("415b2030".to_owned()),
        ),
        ("and `Upgraded from: none yet`: write", |facts| facts.upgraded = None),
        ("the changed definition `metal3.io_hostclaims`", |facts| {
            facts.definitions.push("metal3.io_hostclaims".to_owned());
        }),
    ]);
}

#[test]
fn release_with_other_licences_is_kept_back() {
    let mut facts = ready();
    facts.has_notices = false;
    let wanted = "NOTICES.txt does not have the licences of this commit: run `make release`";
    assert_eq!(problems(&facts), [wanted]);
}

#[test]
fn note_of_an_older_version_does_not_count() {
    let mut facts = ready();
    facts.changelog = facts
        .changelog
        .replace("- `metal3.io_baremetalhosts` has a field more", "nothing");
    facts.changelog.push_str("`metal3.io_baremetalhosts`\n");
    assert_eq!(problems(&facts).len(), 1, "{:?}", problems(&facts));
}

#[test]
fn first_release_has_none_before_it() {
    let mut facts = ready();
    facts.previous = None;
    facts.changelog.truncate(facts.changelog.find("## v1.14.9").unwrap());
    assert_eq!(problems(&facts), Vec::<String>::new());
    facts.version.push_str("-dev");
    let about_others = problems(&facts).iter().any(|problem| problem.contains(PREVIOUS.0));
    assert!(!about_others, "{:?}", problems(&facts));
}

#[test]
fn definition_is_a_file_of_its_own() {
    for (path, wanted) in [
        ("manifests/crds/metal3.io_hostclaims.yaml", Some("metal3.io_hostclaims")),
        ("manifests/crds/kustomization.yaml", None),
        ("manifests/crds/README.md", None),
    ] {
        assert_eq!(definition(path), wanted, "{path}");
    }
}

#[test]
fn release_before_is_a_commit_or_none_and_else_an_error() {
    let read = |line: &str| commit(&format!("a\n{line}\nb\n"), PREVIOUS.1);
    assert_eq!(
        read("Previous release: `c0ffee12`").unwrap().as_deref(),
        Some("c0ffee12")
    );
    assert_eq!(read("Previous release: none yet").unwrap(), None);
    for (line, why) in [
        ("Previous release: v1.15.0", "is neither a commit nor"),
        ("Previous release: c0ffee12,", "is neither a commit nor"),
        ("Previous release: none", "is neither a commit nor"),
        ("Previous release: ", "is neither a commit nor"),
        ("The release before: c0ffee12", "has no line"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
}

#[test]
fn lines_of_the_page_are_read() {
    let page = documents::text(&workspace::root().unwrap().join(PREVIOUS.0)).unwrap();
    commit(&page, PREVIOUS.1).unwrap();
    assert!(commit(&page, UPGRADED).unwrap().is_some());
}

/// On disk, with archives of a layout.
#[test]
fn each_file_that_this_commit_does_not_write_is_named() {
    let scratch = std::env::temp_dir().join(format!("metal3-others-{}", std::process::id()));
    let (folder, images) = (scratch.join("out"), scratch.join("images"));
    let image = "r.example/a@sha256:ab";
    stand_in(&images, "program").unwrap();
    release::write(&folder, image).unwrap();
    chart::write(&folder.join(CHARTS), image).unwrap();
    plugin::write(&folder, &images, &plugin::Options::at("https://a.example/b")).unwrap();
    let found = || differing(&folder, &images, &installed(image)).unwrap();
    for kind in Kind::ALL {
        fs::write(folder.join(kind.file()), "written by `sign`").unwrap();
    }
    assert_eq!(found(), Vec::<String>::new());
    fs::write(folder.join("password"), "secret").unwrap();
    fs::remove_file(folder.join("metadata.yaml")).unwrap();
    let changed = [
        "cluster-template.yaml",
        "charts/metal3-rs/templates/deployment.yaml",
        "monitoring/rules.yaml",
    ];
    for name in changed {
        let text = documents::text(&folder.join(name)).unwrap();
        fs::write(folder.join(name), text + "\n").unwrap();
    }
    let all = found();
    stand_in(&images, "program of the next commit").unwrap();
    let of_next_images = found();
    let is_left = next_to(&folder, "again").exists();
    fs::remove_dir_all(&scratch).unwrap();
    let wanted = [
        "./charts/metal3-rs/templates/deployment.yaml has other bytes",
        "./cluster-template.yaml has other bytes",
        "./metadata.yaml is missing",
        "./monitoring/rules.yaml has other bytes",
        "./password is no file of a release",
    ];
    assert_eq!(all, wanted);
    let archive = "./kubectl-metal3_v0.0.0_linux_amd64.tar.gz has other bytes".to_owned();
    assert!(of_next_images.contains(&archive), "{of_next_images:?}");
    assert!(!is_left, "the files that were written again stay");
}

#[test]
fn parts_of_a_written_release_have_its_version_and_a_missing_one_has_none() {
    let folder = std::env::temp_dir().join(format!("metal3-parts-{}", std::process::id()));
    release::write(&folder, "r/a:1").unwrap();
    chart::write(&folder.join("charts"), "r/a:1").unwrap();
    fs::create_dir_all(folder.join("ipam-metal3/v1.0.0")).unwrap();
    let found = parts(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let own = || vec![version()];
    let wanted = [
        ("charts/metal3-rs-crds/Chart.yaml", own()),
        ("charts/metal3-rs/Chart.yaml", own()),
        ("infrastructure-metal3", own()),
        ("ipam-metal3", vec!["v1.0.0".to_owned(), version()]),
        ("metal3.yaml", Vec::new()),
    ];
    assert_eq!(found, wanted.map(|(part, versions)| (part.to_owned(), versions)).into());
}
