//! The kubeconfig of the sandbox.
//!
//! It replaces only files that the sandbox wrote: neither another kubeconfig of that name nor the target of a symlink.

use std::fs::{OpenOptions, create_dir_all, read_to_string, rename};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

const CONTEXT: &str = "sandbox";

pub(super) fn write(path: &Path, server: &str) -> Result<()> {
    match read_to_string(path) {
        Ok(old) if !is_sandbox(&old) => bail!(
            "--kubeconfig: {} exists and was not written by the sandbox; name another file",
            path.display()
        ),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("--kubeconfig: read {}", path.display()));
        }
        Ok(_) | Err(_) => {}
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_dir_all(folder).with_context(|| format!("--kubeconfig: make {}", folder.display()))?;
    }
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    // A new file follows no symlink, and rename replaces one.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .with_context(|| format!("--kubeconfig: write {}", path.display()))?;
    file.write_all(text(server).as_bytes()).context("--kubeconfig: write")?;
    rename(&fresh, path).with_context(|| format!("--kubeconfig: write {}", path.display()))
}

/// The path for display, with `~` for the home directory.
pub(super) fn shown(path: &Path) -> String {
    let home = std::env::home_dir().unwrap_or_default();
    match path.strip_prefix(&home) {
        Ok(rest) if !home.as_os_str().is_empty() => format!("~/{}", rest.display()),
        Ok(_) | Err(_) => path.display().to_string(),
    }
}

fn is_sandbox(text: &str) -> bool {
    let config: Option<Value> = serde_json::from_str(text).ok();
    config.is_some_and(|config| config.get("current-context") == Some(&json!(CONTEXT)))
}

fn text(server: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": CONTEXT,
        "clusters": [{ "name": CONTEXT, "cluster": { "server": server } }],
        "users": [{ "name": "admin", "user": {} }],
        "contexts": [{ "name": CONTEXT, "context": { "cluster": CONTEXT, "user": "admin", "namespace": "default" } }],
    });
    format!("{config}\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_in_the_home_directory_are_shortened() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(shown(&home.join("a/b")), "~/a/b");
        assert_eq!(shown(Path::new("/other/b")), "/other/b");
    }

    #[test]
    fn only_sandbox_files_are_replaced_and_symlinks_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("kubeconfig-{}", std::process::id()));
        let (config, link, other) = (folder.join("new/a"), folder.join("b"), folder.join("c"));
        write(&config, "http://127.0.0.1:1").unwrap();
        write(&config, "http://127.0.0.1:2").unwrap();
        assert!(fs::read_to_string(&config).unwrap().contains("127.0.0.1:2"));

        fs::write(&other, "apiVersion: v1\nkind: Config\n").unwrap();
        let why = write(&other, "http://127.0.0.1:3").unwrap_err().to_string();
        assert!(why.contains("name another file"), "{why}");
        assert!(!fs::read_to_string(&other).unwrap().contains("127.0.0.1"));

        symlink(&config, &link).unwrap();
        write(&link, "http://127.0.0.1:4").unwrap();
        assert!(fs::read_to_string(&config).unwrap().contains("127.0.0.1:2"));
        assert!(fs::read_to_string(&link).unwrap().contains("127.0.0.1:4"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
