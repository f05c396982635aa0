//! `bundle`: a release with its images in one archive, for machines that reach no registry of others.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::files::{files_below, relative};
use crate::images::{Entry, Written, archive, fits, sha256};
use crate::trust::installed::{self, Image};
use crate::trust::{SIGNATURE, others, sums};

/// Copies the images to a registry, and writes the files with their name there.
const LOAD: &str = include_str!("load.sh");
const NAME: &str = "load.sh";
const PROGRAM: u32 = 0o755;
const FILE: u32 = 0o644;

/// Writes the archive. A file that is none of the release or of the images is refused: that may be a login of a user.
pub(crate) fn run(release: &Path, images: &Path, file: &Path) -> Result<bool> {
    // Anyone writes sums of what is in a folder: only the signature, which a user verifies, says that it is a release.
    let is_signed = release.join(SIGNATURE).exists();
    if is_signed || release.join(sums::FILE).exists() {
        sums::verify(release)?;
    }
    let written = Written::read(images)?;
    let script = script(&installed::only(&installed::of(release)?)?, &written)?;
    if !is_signed {
        let others = others(release, images)?;
        ensure!(others.is_empty(), "{}: {}", release.display(), others.join("; "));
    }
    let of_images = written.files(images)?;
    let mut files: Vec<(String, Vec<u8>)> = vec![(NAME.to_owned(), script.into_bytes())];
    for (folder, name, paths) in [
        (release, "release", files_below(release)?),
        (images, "images", of_images),
    ] {
        for path in paths {
            let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            files.push((format!("{name}/{}", relative(&path, folder)?), content));
        }
    }
    let bytes = bundle(files, &written.tag)?;
    fs::write(file, &bytes).with_context(|| format!("write {}", file.display()))?;
    println!("{}: {} MiB", file.display(), bytes.len().div_ceil(1024 * 1024));
    Ok(true)
}

/// The script for these images, under the name that the release has for them.
fn script(installed: &Image, written: &Written) -> Result<String> {
    let (name, digest) = (&installed.repository, &written.digest);
    ensure!(
        installed.digest == *digest,
        "the release installs {}, and the images are {digest}",
        installed.at("")
    );
    // It is part of a pattern of sed.
    ensure!(
        name.chars()
            .all(|one| one.is_ascii_alphanumeric() || "./:-_".contains(one)),
        "{name} is no name of an image"
    );
    Ok(LOAD
        .replace("image=IMAGE", &format!("image='{}'", name.replace('.', "\\.")))
        .replace("tag=TAG", &format!("tag='{}'", written.tag))
        .replace("DIGEST", digest))
}

/// The archive of these files, in order, below a folder with the version.
fn bundle(mut files: Vec<(String, Vec<u8>)>, tag: &str) -> Result<Vec<u8>> {
    files.sort();
    let listed: String = files
        .iter()
        .map(|(name, content)| format!("{}  ./{name}\n", sha256(content).trim_start_matches("sha256:")))
        .collect();
    files.push((sums::FILE.to_owned(), listed.into_bytes()));
    let named: Vec<(String, u32, Vec<u8>)> = files
        .into_iter()
        .map(|(name, content)| {
            let mode = if name == NAME { PROGRAM } else { FILE };
            (format!("metal3-rs-{tag}/{name}"), mode, content)
        })
        .collect();
    if let Some((long, ..)) = named.iter().find(|(name, ..)| !fits(name)) {
        bail!("{long}: the name is too long for an archive");
    }
    let entries: Vec<Entry<'_>> = named
        .iter()
        .map(|(name, mode, content)| Entry {
            name,
            mode: *mode,
            content,
        })
        .collect();
    // The files of a release have no time of their own.
    Ok(archive(&entries, 0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;
    use crate::run::succeed;

    fn written() -> Written {
        Written::of_test("v1.2.3", "sha256:00ff")
    }

    fn installed(repository: &str, digest: &str) -> Image {
        Image {
            repository: repository.to_owned(),
            digest: digest.to_owned(),
        }
    }

    #[test]
    fn the_images_of_another_release_are_refused() {
        assert!(script(&installed("registry.example/a/b", "sha256:00ff"), &written()).is_ok());
        for (name, digest, part) in [
            ("registry.example/a/b", "sha256:11", "the images are sha256:00ff"),
            ("a;b", "sha256:00ff", "no name of an image"),
        ] {
            let error = script(&installed(name, digest), &written()).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }

    #[test]
    fn file_that_a_signed_release_does_not_name_is_not_packed() {
        let folder = std::env::temp_dir().join(format!("bundle-sums-{}", std::process::id()));
        let (release, images) = (folder.join("release"), folder.join("images"));
        fs::create_dir_all(&release).unwrap();
        let packed = || format!("{:#}", run(&release, &images, &folder.join("one.tar")).unwrap_err());
        fs::write(release.join("all.yaml"), "image: r/a@sha256:00\n").unwrap();
        fs::write(release.join("password"), "secret").unwrap();
        let without_sums = packed();
        let sums = format!(
            "{}  ./all.yaml\n",
            sha256(b"image: r/a@sha256:00\n").trim_start_matches("sha256:")
        );
        fs::write(release.join(sums::FILE), sums).unwrap();
        let refused = packed();
        fs::remove_file(release.join("password")).unwrap();
        let as_signed = packed();
        fs::remove_dir_all(&folder).unwrap();
        assert!(refused.ends_with("release: ./password is not named"), "{refused}");
        for next in [without_sums, as_signed] {
            assert!(next.contains("run `make images` first"), "{next}");
        }
    }

    /// The files of an archive with a manifest, one of whose names is long.
    fn files() -> Vec<(String, Vec<u8>)> {
        let script = script(&installed("registry.example/a/b", "sha256:00ff"), &written()).unwrap();
        let named = |name: &str, content: &str| (name.to_owned(), content.as_bytes().to_vec());
        let long = format!("release/{}/{}", "f".repeat(60), "n".repeat(99));
        vec![
            named("load.sh", &script),
            named("release/all.yaml", "image: registry.example/a/b@sha256:00ff\n"),
            named("images/index.json", "{}"),
            named(&long, ""),
        ]
    }

    #[test]
    fn same_files_give_the_same_bytes_and_a_name_that_is_too_long_is_an_error() {
        let mut other_order = files();
        other_order.reverse();
        assert_eq!(
            bundle(files(), "v1.2.3").unwrap(),
            bundle(other_order, "v1.2.3").unwrap()
        );
        let too_long = vec![("n".repeat(101), Vec::new())];
        assert!(bundle(too_long, "v1.2.3").is_err());
    }

    /// As a shell and `tar` of others read it, without a registry.
    #[test]
    fn files_get_the_new_name_and_a_changed_or_added_file_is_refused() {
        let archive = bundle(files(), "v1.2.3").unwrap();
        let folder = std::env::temp_dir().join(format!("bundle-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("one.tar"), archive).unwrap();
        let tar = Command::new("tar")
            .current_dir(&folder)
            .args(["-xf", "one.tar"])
            .status();
        assert!(tar.unwrap().success());
        let within = folder.join("metal3-rs-v1.2.3");
        let programs = folder.join("programs");
        fs::create_dir_all(&programs).unwrap();
        let program = |name: &str, text: &str| {
            fs::write(programs.join(name), text).unwrap();
            fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("skopeo", "#!/bin/sh\n");
        let with_programs = "PATH=\"$0:$PATH\"; export PATH; exec sh \"$@\"";
        let load = |out: &str| {
            let mut load = Command::new("sh");
            load.current_dir(&within).args(["-c", with_programs]).arg(&programs);
            load.args([NAME, "127.0.0.1:1/x", out]);
            let output = load.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            (output.status.success(), said)
        };
        assert_eq!(load("an out"), (true, "127.0.0.1:1/x@sha256:00ff\n".to_owned()));
        assert_eq!(
            fs::read_to_string(within.join("an out/all.yaml")).unwrap(),
            "image: 127.0.0.1:1/x@sha256:00ff\n"
        );
        assert!(!load("an out").0, "a folder that exists is kept");
        program("sed", "#!/bin/sh\nexit 1\n");
        assert!(!load("torn").0);
        let left = fs::read_dir(&within).unwrap().map(|one| one.unwrap().file_name());
        let torn = left.filter(|name| name.to_string_lossy().starts_with("torn"));
        assert_eq!(torn.count(), 0, "a folder that is not whole stays");
        fs::remove_file(programs.join("sed")).unwrap();
        for added in ["images/added", "release/SHA256SUMS.yaml", "release/f/SHA256SUMS.sig"] {
            fs::create_dir_all(within.join("release/f")).unwrap();
            fs::write(within.join(added), "a").unwrap();
            let (is_done, said) = load("out");
            let wanted = format!("SHA256SUMS does not name: ./{added}");
            assert!(!is_done && said.contains(&wanted), "{added}: {said}");
            fs::remove_file(within.join(added)).unwrap();
        }
        fs::write(within.join("release/all.yaml"), "b").unwrap();
        let (is_done, said) = load("out");
        assert!(!is_done && said.contains("release/all.yaml: FAILED"), "{said}");
        assert!(!within.join("out").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    /// The sums of the archive have no signature: those of the release, which have one, are compared, too.
    #[test]
    fn file_that_only_the_sums_of_the_archive_name_is_not_copied() {
        let script = script(&installed("registry.example/a/b", "sha256:00ff"), &written()).unwrap();
        let named = |name: &str, content: &str| (name.to_owned(), content.as_bytes().to_vec());
        let digest = sha256(b"a").replace("sha256:", "");
        let files = vec![
            named(NAME, &script),
            named("release/all.yaml", "a"),
            named("images/index.json", "{}"),
            named("release/SHA256SUMS", &format!("{digest}  ./all.yaml\n")),
            named("release/SHA256SUMS.sig", "signature"),
            named("release/charts/a/templates/added.yaml", "b"),
        ];
        let folder = std::env::temp_dir().join(format!("bundle-added-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("one.tar"), bundle(files, "v1.2.3").unwrap()).unwrap();
        succeed(Command::new("tar").current_dir(&folder).args(["-xf", "one.tar"])).unwrap();
        let script = folder.join("metal3-rs-v1.2.3").join(NAME);
        let output = Command::new("sh")
            .arg(script)
            .args(["127.0.0.1:1/x", "out"])
            .current_dir(&folder)
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        fs::remove_dir_all(&folder).unwrap();
        assert!(!output.status.success());
        assert!(
            said.contains("SHA256SUMS does not name: ./charts/a/templates/added.yaml"),
            "{said}"
        );
    }

    #[test]
    fn name_that_is_none_in_a_registry_is_refused_before_anything_is_copied() {
        let script = script(&installed("registry.example/a/b", "sha256:00ff"), &written()).unwrap();
        for (name, why) in [
            ("capm3", "names no registry"),
            ("metal3/capm3", "names no registry"),
            ("registry.example", "names no image"),
            ("registry.example/a&b", "is no name"),
            ("registry.example/a|b", "is no name"),
            ("registry.example/a:v1", "has a tag"),
        ] {
            let mut load = Command::new("sh");
            let output = load.args(["-c", &script, NAME, name, "/nowhere/out"]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && said.contains(why), "{name}: {said}");
        }
    }

    #[test]
    fn certificate_of_the_registry_is_verified_unless_it_is_local_or_the_user_says_so() {
        let script = script(&installed("registry.example/a/b", "sha256:00ff"), &written()).unwrap();
        let files = vec![
            (NAME.to_owned(), script.into_bytes()),
            ("release/all.yaml".to_owned(), Vec::new()),
            ("images/index.json".to_owned(), Vec::new()),
        ];
        let folder = std::env::temp_dir().join(format!("bundle-tls-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("one.tar"), bundle(files, "v1.2.3").unwrap()).unwrap();
        succeed(Command::new("tar").current_dir(&folder).args(["-xf", "one.tar"])).unwrap();
        fs::write(folder.join("skopeo"), "#!/bin/sh\necho \"$@\"\n").unwrap();
        fs::set_permissions(folder.join("skopeo"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::iter::once(folder.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(path).unwrap();
        for (registry, setting, verified) in [
            ("127.0.0.1:1/x", "", "false"),
            ("registry.example/x", "", "true"),
            ("registry.example/x", "false", "false"),
        ] {
            let out = format!("out-{registry}-{setting}").replace('/', "-");
            let mut load = Command::new("sh");
            load.arg(folder.join("metal3-rs-v1.2.3").join(NAME))
                .args([registry, out.as_str()]);
            load.current_dir(&folder).env("PATH", &path);
            let said = succeed(load.env("TLS_VERIFY", setting)).unwrap();
            assert!(
                said.contains(&format!("--dest-tls-verify={verified} ")),
                "{registry} {setting}: {said}"
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
