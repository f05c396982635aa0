//! The kubeconfig of the sandbox.
//!
//! It replaces only files that the sandbox wrote and whose server is gone: neither another kubeconfig of that name, nor that of a
//! sandbox that still runs, nor the target of a symlink.

use std::fs::{OpenOptions, create_dir_all, read_to_string, remove_file, rename};
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

const CONTEXT: &str = "sandbox";
/// The start of the URL of every sandbox.
const LOOPBACK: &str = "http://";
/// Sandboxes that run at the same time, at most.
const MOST: u32 = 20;
/// Longer than any answer on loopback.
const PATIENCE: Duration = Duration::from_millis(200);

/// A written file. Dropping it deletes the file, unless it is another sandbox's by then.
#[derive(Debug)]
pub(super) struct Kubeconfig {
    path: PathBuf,
    server: String,
}

impl Kubeconfig {
    /// Writes the file, or one next to it if that of another sandbox is in use.
    pub(super) fn write(wanted: &Path, server: &str) -> Result<Self> {
        let path = free_path(wanted, server)?;
        if path != wanted {
            say!(
                "{} is that of another sandbox, which still runs; this one has a file of its own",
                shown(wanted)
            );
        }
        write(&path, server)?;
        Ok(Self {
            path,
            server: server.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let text = read_to_string(&self.path).unwrap_or_default();
        if server_of(&text).is_some_and(|server| server == self.server) {
            // It names nothing now; a file that stays is replaced by the next sandbox.
            drop(remove_file(&self.path));
        }
    }
}

/// The first path whose file does not exist, or is that of a sandbox that has ended.
fn free_path(wanted: &Path, server: &str) -> Result<PathBuf> {
    for number in 1..=MOST {
        let path = numbered(wanted, number);
        match read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error).with_context(|| format!("--kubeconfig: read {}", path.display())),
            Ok(old) => match server_of(&old) {
                None => bail!(
                    "--kubeconfig: {} exists and was not written by the sandbox, or was changed; delete it, or name another \
                     file: make demo KUBECONFIG_FILE=FILE",
                    path.display()
                ),
                Some(old) if old != server && answers(&old) => {}
                Some(_) => return Ok(path),
            },
        }
    }
    bail!("--kubeconfig: {MOST} sandboxes run; name another file")
}

/// The name itself, or with a number: `sandbox-2.kubeconfig`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let part = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let ending = part(path.extension()).map_or_else(String::new, |ending| format!(".{ending}"));
    path.with_file_name(format!(
        "{}-{number}{ending}",
        part(path.file_stem()).unwrap_or_default()
    ))
}

fn write(path: &Path, server: &str) -> Result<()> {
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

/// The path for display from any folder, with `~` for the home directory.
pub(super) fn shown(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let home = std::env::home_dir().unwrap_or_default();
    match path.strip_prefix(&home) {
        Ok(rest) if !home.as_os_str().is_empty() => format!("~/{}", rest.display()),
        Ok(_) | Err(_) => path.display().to_string(),
    }
}

/// The server of a file that the sandbox wrote. `kubectl config` writes it again, as YAML, with another namespace for example.
fn server_of(text: &str) -> Option<String> {
    let config: Value = serde_saphyr::from_str(text).ok()?;
    let only = |list: &str| match config.get(list)?.as_array()?.as_slice() {
        [one] if one.get("name")? == CONTEXT => Some(one.clone()),
        _ => None,
    };
    only("contexts")?;
    let server = only("clusters")?.pointer("/cluster/server")?.as_str()?.to_owned();
    address(&server).filter(|address| address.ip().is_loopback())?;
    Some(server)
}

fn address(server: &str) -> Option<SocketAddr> {
    server.strip_prefix(LOOPBACK)?.parse().ok()
}

/// Whether something listens there.
fn answers(server: &str) -> bool {
    address(server).is_some_and(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
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
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kubeconfig-{name}-{}", std::process::id()))
    }

    #[test]
    fn paths_in_the_home_directory_are_shortened() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(shown(&home.join("a/b")), "~/a/b");
        assert_eq!(shown(Path::new("/other/b")), "/other/b");
        assert!(
            !shown(Path::new("out/f")).starts_with("out"),
            "it names the file in another terminal too"
        );
    }

    #[test]
    fn only_sandbox_files_are_replaced_and_symlinks_are_not_followed() {
        let folder = folder("own");
        let (config, link, other) = (folder.join("new/a"), folder.join("b"), folder.join("c"));
        let written = |path: &Path, server: &str| std::mem::forget(Kubeconfig::write(path, server).unwrap());
        written(&config, "http://127.0.0.1:1");
        written(&config, "http://127.0.0.1:2");
        assert!(fs::read_to_string(&config).unwrap().contains("127.0.0.1:2"));

        let own_name = r#"{"current-context":"sandbox","clusters":[{"name":"sandbox","cluster":{"server":"https://prod"}}],
            "contexts":[{"name":"sandbox","context":{}}]}"#;
        for foreign in ["apiVersion: v1\nkind: Config\n", own_name] {
            fs::write(&other, foreign).unwrap();
            let why = Kubeconfig::write(&other, "http://127.0.0.1:3").unwrap_err().to_string();
            assert!(why.contains("name another file"), "{why}");
            assert_eq!(fs::read_to_string(&other).unwrap(), foreign);
        }

        symlink(&config, &link).unwrap();
        written(&link, "http://127.0.0.1:4");
        assert!(fs::read_to_string(&config).unwrap().contains("127.0.0.1:2"));
        assert!(fs::read_to_string(&link).unwrap().contains("127.0.0.1:4"));
        fs::remove_dir_all(&folder).unwrap();
    }

    /// As `kubectl config set-context --current --namespace=lab` leaves it.
    #[test]
    fn file_that_kubectl_changed_is_still_the_sandboxs() {
        let text = "apiVersion: v1\nclusters:\n- cluster:\n    server: http://127.0.0.1:9\n  name: sandbox\ncontexts:\n- context:\n    \
            cluster: sandbox\n    namespace: lab\n    user: admin\n  name: sandbox\ncurrent-context: sandbox\nkind: Config\n\
            preferences: {}\nusers:\n- name: admin\n  user: {}\n";
        assert_eq!(server_of(text).as_deref(), Some("http://127.0.0.1:9"));
        let two = text.replace("contexts:\n", "contexts:\n- context: {}\n  name: mine\n");
        assert_eq!(server_of(&two), None, "a context of the user is not lost");
    }

    #[test]
    fn file_of_a_running_sandbox_stays_and_each_deletes_its_own() {
        let (folder, first) = (folder("two"), TcpListener::bind("127.0.0.1:0").unwrap());
        let path = folder.join("sandbox.kubeconfig");
        let server = format!("http://{}", first.local_addr().unwrap());
        let one = Kubeconfig::write(&path, &server).unwrap();
        let two = Kubeconfig::write(&path, "http://127.0.0.1:1").unwrap();
        assert_eq!(
            (one.path(), two.path()),
            (path.as_path(), folder.join("sandbox-2.kubeconfig").as_path())
        );
        assert!(fs::read_to_string(&path).unwrap().contains(&server));
        let second = two.path().to_owned();
        drop(two);
        assert!(path.exists() && !second.exists());
        // It has ended, as after a crash: its file is free, and not its own any more.
        drop(first);
        let three = Kubeconfig::write(&path, "http://127.0.0.1:2").unwrap();
        assert_eq!(three.path(), path);
        drop(one);
        assert!(path.exists());
        drop(three);
        assert!(!path.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
