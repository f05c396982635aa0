//! Commands of other programs whose failure is an error with their output.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The output of a command that succeeds; otherwise its errors are part of the error.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("run {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} {}: {}",
        command.get_program().display(),
        command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The output of git in a checkout.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = succeed(Command::new("git").arg("-C").arg(root).args(arguments))?;
    Ok(output.trim().to_owned())
}

/// The files of a checkout that differ from its commit, or that it does not have; empty if there are none. Only `.gitignore` hides a
/// file: the settings of a user and of a clone may hide others from `git status`.
pub(crate) fn changes(root: &Path) -> Result<String> {
    // A monitor of the file system, and filters that a clone has for itself, say what git takes for a file.
    let ask = |words: &[&str]| git(root, &[&["-c", "core.fsmonitor=false"], words].concat());
    let attributes = git(root, &["rev-parse", "--git-path", "info/attributes"])?;
    let filters = root.join(&attributes).is_file().then_some(attributes.as_str());
    let changed = ask(&["diff", "--name-only", "--no-ext-diff", "HEAD"])?;
    let mut others = vec!["ls-files", "--others"];
    if root.join(".gitignore").is_file() {
        others.extend(["--exclude-from", ".gitignore"]);
    }
    let others = ask(&others)?;
    // `h file`: git assumes that it is unchanged. `S file`: that it is not in the work tree.
    let listed = ask(&["ls-files", "-v"])?;
    let assumed = listed.lines().filter_map(|line| line.split_once(' '));
    let assumed = assumed.filter(|(tag, _)| *tag == "S" || tag.chars().all(char::is_lowercase));
    let files = changed.lines().chain(others.lines()).chain(filters);
    let files: Vec<&str> = files.chain(assumed.map(|(_, path)| path)).collect();
    Ok(files.join(", "))
}

/// A folder next to another. The name is longer, so that no part of the other name that looks like an ending is replaced.
pub(crate) fn next_to(folder: &Path, word: &str) -> PathBuf {
    // The iterator leaves a slash at the end out.
    let mut path = folder.components().collect::<PathBuf>().into_os_string();
    path.push(".");
    path.push(word);
    path.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn settings_of_git_hide_no_change() {
        let root = std::env::temp_dir().join(format!("changes-{}", std::process::id()));
        fs::create_dir_all(root.join(".cargo")).unwrap();
        let run = |words: &[&str]| git(&root, words).unwrap();
        run(&["init", "--quiet"]);
        fs::write(root.join(".gitignore"), "/target\n").unwrap();
        fs::write(root.join("main.rs"), "a").unwrap();
        run(&["add", "."]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        run(&[&author[..], &["commit", "--quiet", "--message", "a"]].concat());
        let of = || changes(&root).unwrap();
        let clean = of();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::write(root.join("target/file"), "").unwrap();
        let ignored = of();
        run(&["config", "status.showUntrackedFiles", "no"]);
        fs::write(root.join(".git/info/exclude"), ".cargo\n").unwrap();
        fs::write(root.join(".cargo/config.toml"), "").unwrap();
        let other = of();
        fs::remove_file(root.join(".cargo/config.toml")).unwrap();
        run(&["update-index", "--assume-unchanged", "main.rs"]);
        let assumed = of();
        run(&["update-index", "--no-assume-unchanged", "main.rs"]);
        fs::write(root.join(".git/info/attributes"), "* filter=a\n").unwrap();
        let filtered = of();
        fs::remove_file(root.join(".git/info/attributes")).unwrap();
        run(&["config", "core.fsmonitor", "/bin/true"]);
        fs::write(root.join("main.rs"), "b").unwrap();
        let changed = of();
        run(&["add", "."]);
        let staged = of();
        fs::remove_dir_all(&root).unwrap();
        let filters = ".git/info/attributes";
        let wanted = ["", "", ".cargo/config.toml", "main.rs", filters, "main.rs", "main.rs"];
        assert_eq!(
            [clean, ignored, other, assumed, filtered, changed, staged],
            wanted.map(str::to_owned)
        );
    }

    #[test]
    fn folder_next_to_another_has_its_whole_name() {
        for (folder, wanted) in [
            ("out/images", "out/images.trust"),
            ("out/images-1.15.0", "out/images-1.15.0.trust"),
            ("/srv/images/", "/srv/images.trust"),
        ] {
            assert_eq!(next_to(Path::new(folder), "trust"), Path::new(wanted));
        }
    }
}
