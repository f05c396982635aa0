//! Serves images at the addresses of published manifests. The stack's network has these addresses, with a test image at
//! each, so that the manifests need no change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::{SocketAddrV4, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::claims::stack::Stack;
use crate::wait::until;

const START: Duration = Duration::from_secs(30);
const HTTP: u16 = 80;

/// The image of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImageRef {
    url: String,
    checksum: String,
    /// The explicit type; without one it follows from the checksum.
    algorithm: Option<String>,
}

impl ImageRef {
    /// The image of an object that has one.
    pub(crate) fn by(object: &Value) -> Option<Self> {
        let image = &object["spec"]["template"]["spec"]["image"];
        let text = |member: &str| image[member].as_str().map(str::to_owned);
        Some(Self {
            url: text("url")?,
            checksum: text("checksum")?,
            algorithm: text("checksumType"),
        })
    }

    /// The program that computes the checksum file.
    fn checksum_program(&self) -> anyhow::Result<&'static str> {
        match self.algorithm.as_deref() {
            Some("md5") => Ok("md5sum"),
            Some("sha512") => Ok("sha512sum"),
            Some("sha256" | "auto") | None => Ok("sha256sum"),
            Some(other) => bail!("{}: unknown checksum type {other}", self.url),
        }
    }

    /// The checksum, when it is not in a file. The served bytes do not match it.
    fn digest(&self) -> Option<&str> {
        (!self.checksum.starts_with("http://")).then_some(&self.checksum)
    }
}

/// The checksums that agents must accept for the served images.
pub(super) fn trusted_checksums(images: &BTreeSet<ImageRef>) -> impl Iterator<Item = &str> {
    images.iter().filter_map(ImageRef::digest)
}

/// The file server of Ironic's images.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) python: PathBuf,
    pub(super) script: PathBuf,
}

/// The address and the path of a URL.
fn place(url: &str) -> anyhow::Result<(SocketAddrV4, PathBuf)> {
    let parts = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    let (authority, path) = parts.with_context(|| format!("{url} is not http://ADDRESS/PATH"))?;
    let server = authority.parse().or_else(|_| format!("{authority}:{HTTP}").parse());
    let server = server.with_context(|| format!("{url} names no IPv4 address"))?;
    let path = PathBuf::from(path);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(is_plain, "the path of {url} leaves the directory");
    Ok((server, path))
}

/// Writes a checksum file for an image.
pub(super) fn write_sum(stack: &Stack, program: &str, image: &Path, file: &Path) -> anyhow::Result<()> {
    let printed = stack.run(program, &[&image.display().to_string()], None)?;
    let digest = printed.split_whitespace().next();
    let digest = digest.with_context(|| format!("{program} prints nothing"))?;
    let name = image.file_name().context("an image without name")?.to_string_lossy();
    Ok(fs::write(file, format!("{digest}  {name}\n"))?)
}

/// Serves these bytes at the addresses of all images, with their checksum files.
pub(super) fn serve(stack: &Stack, program: &Program, images: &BTreeSet<ImageRef>, bytes: &Path) -> anyhow::Result<()> {
    let mut folders = BTreeMap::new();
    let mut file = |url: &str| -> anyhow::Result<PathBuf> {
        let (server, path) = place(url)?;
        let folder = stack.places.state_file(&format!("mirror-{server}"));
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&folder))?;
        folders.insert(server, folder);
        Ok(path)
    };
    for image in images {
        let path = file(&image.url)?;
        fs::copy(bytes, &path)?;
        if image.digest().is_none() {
            write_sum(stack, image.checksum_program()?, &path, &file(&image.checksum)?)?;
        }
    }
    folders
        .iter()
        .try_for_each(|(server, folder)| start(stack, program, *server, folder))
}

/// The server and its address end with the stack.
fn start(stack: &Stack, program: &Program, server: SocketAddrV4, folder: &Path) -> anyhow::Result<()> {
    let address = format!("{}/32", server.ip());
    stack.run("ip", &["address", "replace", &address, "dev", "lo"], None)?;
    let log = File::create(stack.places.log(&format!("mirror-{server}")))?;
    let mut child = Command::new(&program.python)
        .arg(&program.script)
        .args([server.ip().to_string(), server.port().to_string()])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", program.python.display()))?;
    until(START, &format!("the file server at {server}"), || {
        ensure!(child.try_wait()?.is_none(), "the file server ended, see its log");
        Ok(TcpStream::connect(server).is_ok().then_some(()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn file_is_served_at_its_address() {
        let (server, path) = place("http://172.22.0.1/images/a.img").unwrap();
        assert_eq!(server.to_string(), "172.22.0.1:80");
        assert_eq!(path, Path::new("images/a.img"));
        assert_eq!(place("http://10.0.0.1:8080/a").unwrap().0.port(), 8080);
        for refused in [
            "https://10.0.0.1/a",
            "http://10.0.0.1",
            "http://here/a",
            "http://10.0.0.1/../a",
        ] {
            assert!(place(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn checksum_file_has_the_ordered_type_and_a_literal_checksum_is_accepted() {
        let template = |checksum: &str, kind: &str| {
            let image = json!({"url": "http://10.0.0.1/a", "checksum": checksum, "checksumType": kind});
            ImageRef::by(&json!({"spec": {"template": {"spec": {"image": image}}}})).unwrap()
        };
        let images = BTreeSet::from([template("http://10.0.0.1/a.md5sum", "md5"), template("ab", "sha256")]);
        assert!(trusted_checksums(&images).eq(["ab"]));
        assert_eq!(template("ab", "md5").checksum_program().unwrap(), "md5sum");
        assert!(template("ab", "crc").checksum_program().is_err());
        assert_eq!(ImageRef::by(&json!({"kind": "Cluster"})), None);
    }
}
