use metal3_files::documents;
use serde_json::{Value, json};

use super::layout::{ENTRYPOINT, USER, sha256};
use super::*;

fn facts() -> Facts {
    Facts {
        version: "v1.2.3".to_owned(),
        revision: "0123abc".to_owned(),
        source: "https://example.org/source".to_owned(),
        compiler: "rustc 1.2.3 (ab 2026), cc 1".to_owned(),
        created: 1_700_000_000,
    }
}

fn written(facts: &Facts) -> Layout {
    let programs = ["amd64", "arm64"].map(|name| {
        let program = format!("a program for {name}").repeat(100);
        (architecture(name).unwrap(), program.into_bytes())
    });
    Layout::of(&programs, "licences\n", facts).unwrap()
}

fn json_at(layout: &Layout, path: &str) -> Value {
    serde_json::from_slice(&layout.files[Path::new(path)]).unwrap()
}

fn blob(layout: &Layout, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    let content = layout.files[&Path::new("blobs/sha256").join(digest.trim_start_matches("sha256:"))].clone();
    assert_eq!(sha256(&content), digest);
    assert_eq!(descriptor["size"], content.len());
    content
}

/// Index, and for each architecture its manifest and configuration.
fn read(layout: &Layout) -> (Value, Vec<(Value, Value)>) {
    let parsed = |descriptor: &Value| serde_json::from_slice::<Value>(&blob(layout, descriptor)).unwrap();
    let index = parsed(&json_at(layout, "index.json")["manifests"][0]);
    let images = index["manifests"].as_array().unwrap().iter().map(|descriptor| {
        let manifest = parsed(descriptor);
        let config = parsed(&manifest["config"]);
        (manifest, config)
    });
    let images = images.collect();
    (index, images)
}

fn options(profile: &str) -> Options {
    Options {
        compiled: Compiled {
            profile: profile.to_owned(),
            target: PathBuf::new(),
        },
        architectures: Vec::new(),
        source: String::new(),
        epoch: Some(0),
    }
}

#[test]
fn checkout_that_changes_during_a_build_is_not_its_source() {
    let checkout = std::env::temp_dir().join(format!("metal3-during-{}", std::process::id()));
    fs::create_dir_all(&checkout).unwrap();
    let git = |words: &[&str]| {
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        succeed(git.arg("-C").arg(&checkout).args(author).args(words)).map(drop)
    };
    let commit = || git(&["commit", "--quiet", "--allow-empty", "--message=a"]);
    git(&["init", "--quiet"]).unwrap();
    commit().unwrap();
    let built = |build: &dyn Fn() -> Result<()>| {
        let built = of_one_commit(&checkout, &options("dist"), build);
        built
            .map(|((), facts)| facts.revision)
            .map_err(|error| error.to_string())
    };
    let head = crate::run::git(&checkout, &["rev-parse", "HEAD"]).unwrap();
    let unchanged = built(&|| Ok(()));
    let new_commit = built(&commit);
    let new_file = built(&|| Ok(fs::write(checkout.join("file"), "")?));
    fs::remove_dir_all(&checkout).unwrap();
    assert_eq!(unchanged, Ok(head.clone()));
    for changed in [new_commit, new_file] {
        let error = changed.unwrap_err();
        assert!(
            error.starts_with("the checkout changed during the build, from "),
            "{error}"
        );
    }
}

#[test]
fn revision_of_a_program_that_is_not_optimised_is_no_commit() {
    let root = workspace::root().unwrap();
    let revision = |profile: &str| super::facts(&root, &options(profile)).unwrap().revision;
    assert!(!revision("dist").ends_with("-dev"));
    for profile in ["dev", "release"] {
        assert_eq!(revision(profile), format!("{}-dev", revision("dist")));
    }
}

#[test]
fn a_layout_depends_on_the_programs_and_facts_alone() {
    assert_eq!(written(&facts()), written(&facts()));
    let changes: [fn(&mut Facts); 4] = [
        |facts| facts.version.push('1'),
        |facts| facts.revision.push('1'),
        |facts| facts.source.push('1'),
        |facts| facts.created += 1,
    ];
    for change in changes {
        let mut other = facts();
        change(&mut other);
        assert_ne!(written(&other).digest, written(&facts()).digest, "{other:?}");
    }
}

#[test]
fn the_index_names_an_image_for_each_architecture_and_the_version_is_the_tag() {
    let layout = written(&facts());
    let top = json_at(&layout, "index.json");
    assert_eq!(top["manifests"].as_array().unwrap().len(), 1);
    assert_eq!(
        top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
        "v1.2.3"
    );
    assert_eq!(top["manifests"][0]["digest"], layout.digest);
    assert_eq!(json_at(&layout, "oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }));
    let (index, images) = read(&layout);
    let platforms: Vec<&Value> = index["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| &image["platform"])
        .collect();
    assert_eq!(*platforms[0], json!({ "architecture": "amd64", "os": "linux" }));
    assert_eq!(
        *platforms[1],
        json!({ "architecture": "arm64", "os": "linux", "variant": "v8" })
    );
    for ((_, config), platform) in images.iter().zip(platforms) {
        assert_eq!(config["architecture"], platform["architecture"]);
        assert_eq!(config["os"], "linux");
    }
}

#[test]
fn labels_and_annotations_name_source_revision_compiler_licence_version_and_time() {
    let wanted = json!({
        "metal3-rs/compiler": "rustc 1.2.3 (ab 2026), cc 1",
        "org.opencontainers.image.created": "2023-11-14T22:13:20Z",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": "0123abc",
        "org.opencontainers.image.source": "https://example.org/source",
        "org.opencontainers.image.title": "capm3",
        "org.opencontainers.image.version": "v1.2.3",
    });
    let (index, images) = read(&written(&facts()));
    assert_eq!(index["annotations"], wanted);
    assert_eq!(images.len(), 2);
    for (manifest, config) in images {
        assert_eq!(manifest["annotations"], wanted);
        assert_eq!(config["config"]["Labels"], wanted);
        assert_eq!(config["created"], "2023-11-14T22:13:20Z");
    }
}

/// The Containerfile is compared with the Pods by a test of the release.
#[test]
fn user_entry_point_and_file_are_those_of_the_containerfile() {
    let text = documents::text(&workspace::root().unwrap().join("Containerfile")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let entry = format!("ENTRYPOINT [\"{ENTRYPOINT}\"]");
    let user = format!("USER {USER}");
    assert_eq!(lines, ["FROM scratch", "COPY --chmod=0555 capm3 /capm3", &user, &entry]);
    for (_, config) in read(&written(&facts())).1 {
        assert_eq!(config["config"]["User"], USER);
        assert_eq!(config["config"]["Entrypoint"], json!([ENTRYPOINT]));
        assert_eq!(config["config"]["Cmd"], Value::Null);
    }
}

#[test]
fn the_layer_contains_only_the_program_and_the_licences_which_belong_to_root() {
    let layout = written(&facts());
    let (manifest, config) = read(&layout).1.remove(0);
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    let folder = std::env::temp_dir().join(format!("metal3-layer-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("layer.tar.gz");
    fs::write(&path, blob(&layout, &manifest["layers"][0])).unwrap();
    let listed = succeed(
        Command::new("tar")
            .env("TZ", "UTC")
            .args(["--numeric-owner", "-tvzf"])
            .arg(&path),
    )
    .unwrap();
    let words: Vec<&str> = listed.split_whitespace().collect();
    let time = ["2023-11-14", "22:13"];
    assert_eq!(words[..6], ["-r-xr-xr-x", "0/0", "1900", time[0], time[1], "capm3"]);
    assert_eq!(words[6..], ["-r--r--r--", "0/0", "9", time[0], time[1], "NOTICES.txt"]);
    let content = |name: &str| succeed(Command::new("tar").args(["-xOzf"]).arg(&path).arg(name)).unwrap();
    assert_eq!(content("capm3"), "a program for amd64".repeat(100));
    assert_eq!(content("NOTICES.txt"), "licences\n");
    let archive = Command::new("gzip").arg("-dc").arg(&path).output().unwrap().stdout;
    assert_eq!(config["rootfs"]["diff_ids"], json!([sha256(&archive)]));
    fs::remove_dir_all(&folder).unwrap();
}

/// An executable with one segment of this kind.
fn executable(machine: u16, segment: u32) -> Vec<u8> {
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(18, 0);
    program.extend(machine.to_le_bytes());
    program.resize(32, 0);
    program.extend(64_u64.to_le_bytes());
    program.resize(54, 0);
    program.extend(56_u16.to_le_bytes());
    program.extend(1_u16.to_le_bytes());
    program.resize(64, 0);
    program.extend(segment.to_le_bytes());
    program.resize(120, 0);
    program
}

#[test]
fn only_a_static_program_of_the_architecture_enters_an_image() {
    let path = std::env::temp_dir().join(format!("metal3-program-{}", std::process::id()));
    for (content, why) in [
        (executable(62, 1), None),
        (executable(62, 3), Some("needs libraries")),
        (executable(183, 1), Some("is of another architecture")),
        (executable(62, 1)[..66].to_vec(), Some("is not an executable")),
        (b"#!/bin/sh\n".to_vec(), Some("is not an executable")),
        (Vec::new(), Some("is not an executable")),
    ] {
        fs::write(&path, &content).unwrap();
        let read = program::read(&path, architecture("amd64").unwrap()).map_err(|error| error.to_string());
        match (&read, why) {
            (Ok(program), None) => assert_eq!(*program, content),
            (Err(error), Some(why)) => assert!(error.contains(why), "{error}"),
            _ => panic!("{read:?} instead of {why:?}"),
        }
    }
    fs::remove_file(&path).unwrap();
    let own = fs::read("/proc/self/exe").unwrap();
    assert_eq!(elf::is_static(&own), Some(false), "a test program loads the C library");
}

#[test]
fn a_layout_replaces_a_layout_and_no_other_folder() {
    let folder = std::env::temp_dir().join(format!("metal3-layout-{}", std::process::id()));
    write(&written(&facts()), &folder).unwrap();
    let mut other = facts();
    other.version.push('1');
    let layout = written(&other);
    write(&layout, &folder).unwrap();
    let blobs = fs::read_dir(folder.join("blobs/sha256")).unwrap().count();
    assert_eq!(blobs, layout.files.len() - 2, "those of the first layout are gone");
    fs::remove_file(folder.join("oci-layout")).unwrap();
    let error = write(&layout, &folder).unwrap_err();
    assert!(
        error.to_string().contains("something else than an image layout"),
        "{error}"
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_unknown_architecture_is_named() {
    let error = architecture("riscv64").unwrap_err().to_string();
    assert!(error.contains("riscv64") && error.contains("amd64 or arm64"), "{error}");
}

#[test]
fn compiler_is_named_once_or_for_each_architecture() {
    let names = ["amd64", "arm64"].map(str::to_owned);
    for (versions, wanted) in [(["a", "a"], "a"), (["a", "b"], "amd64: a, arm64: b")] {
        assert_eq!(joined(&names, &versions.map(str::to_owned)), wanted);
    }
}

#[test]
fn file_that_is_none_of_the_images_or_has_other_bytes_is_an_error() {
    let folder = std::env::temp_dir().join(format!("images-files-{}", std::process::id()));
    let layout = written(&facts());
    write(&layout, &folder).unwrap();
    let read = || Written::read(&folder).and_then(|written| written.files(&folder));
    let all = read().map(|files| files.len());
    fs::write(folder.join("login.json"), "a").unwrap();
    let added = read().unwrap_err().to_string();
    fs::remove_file(folder.join("login.json")).unwrap();
    let largest = layout.files.iter().max_by_key(|(_, content)| content.len()).unwrap().0;
    fs::write(folder.join(largest), "b").unwrap();
    let changed = read().unwrap_err().to_string();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(all.unwrap(), layout.files.len());
    assert!(added.contains("login.json is no file of the images"), "{added}");
    assert!(changed.contains("has the digest"), "{changed}");
}
