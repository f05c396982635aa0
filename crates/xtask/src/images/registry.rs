//! Images in a registry: `skopeo` copies the layout; what the registry then serves has the digest of the layout.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::layout::{Layout, sha256};
use super::stand_in;
use super::written::Written;
use crate::run::{next_to, succeed};
use crate::tools;

/// The end of a version that is not released.
const DEVELOPMENT: &str = "-dev";

/// Copies the images of a layout to `REGISTRY/NAME`, and prints the image to install. `is_name_only`: without the copy.
pub(crate) fn push(folder: &Path, repository: &str, is_name_only: bool) -> Result<bool> {
    let image = match is_name_only {
        true => Written::read(folder)?.at(repository)?,
        false => {
            require_unreleased(folder, repository)?;
            pushed(folder, repository)?
        }
    };
    println!("{image}");
    Ok(true)
}

/// What a registry has under a tag.
#[derive(Debug)]
enum Served {
    Absent,
    /// Its digest.
    Image(String),
    /// It does not say, for this reason.
    Unknown(String),
}

/// Requires that the registry does not have other images of the version of a layout.
pub(crate) fn require_unreleased(folder: &Path, repository: &str) -> Result<()> {
    let written = Written::read(folder)?;
    written.at(repository)?;
    require_same(&written.tag, &written.digest, repository)
}

/// Requires that a released version in `HOST/NAME` has this digest, if it is there: who installs it by its tag, or has its
/// digest, gets the same again. A development version may change.
pub(crate) fn require_same(tag: &str, digest: &str, repository: &str) -> Result<()> {
    if tag.ends_with(DEVELOPMENT) {
        return Ok(());
    }
    compare(&format!("{repository}:{tag}"), digest, &served(repository, tag)?)
}

fn compare(image: &str, digest: &str, served: &Served) -> Result<()> {
    match served {
        Served::Image(found) => ensure!(
            found == digest,
            "{image} is {found} in the registry, and here {digest}: a released version does not change, raise CAPM3_PATCH"
        ),
        Served::Unknown(why) => bail!(
            "whether {image} was released is not known; log in, and create the repository if there is none: {why}"
        ),
        Served::Absent => {}
    }
    Ok(())
}

fn served(repository: &str, tag: &str) -> Result<Served> {
    tools::install("skopeo", &["skopeo"])?;
    let verify = format!("--tls-verify={}", !is_loopback(repository));
    let image = format!("docker://{repository}:{tag}");
    let output = Command::new("skopeo")
        .args(["inspect", "--raw", &verify, &image])
        .output()
        .context("run skopeo")?;
    if output.status.success() {
        return Ok(Served::Image(sha256(&output.stdout)));
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(if is_absence(&why) {
        Served::Absent
    } else {
        Served::Unknown(why)
    })
}

/// Whether skopeo prints that the registry has no such repository or tag. Everything else, such as a refused login, leaves that open.
fn is_absence(printed: &str) -> bool {
    let printed = printed.to_lowercase();
    ["manifest unknown", "name unknown", "not found", "does not exist"]
        .iter()
        .any(|words| printed.contains(words))
}

/// The pushed image by its digest.
pub(crate) fn pushed(folder: &Path, repository: &str) -> Result<String> {
    let written = Written::read(folder)?;
    let by_digest = written.at(repository)?;
    copy_layout(folder, &written.tag, &written.digest, repository)?;
    Ok(by_digest)
}

/// Copies what a layout has under this tag to `HOST/NAME`, and requires that the registry serves the digest.
pub(crate) fn copy_layout(folder: &Path, tag: &str, digest: &str, repository: &str) -> Result<()> {
    tools::install("skopeo", &["skopeo"])?;
    let image = format!("docker://{repository}:{tag}");
    // A registry on this machine usually has no certificate.
    let verify = format!("--dest-tls-verify={}", !is_loopback(repository));
    succeed(
        Command::new("skopeo")
            .args(["copy", "--quiet", "--all", "--preserve-digests", &verify])
            .args([format!("oci:{}:{tag}", folder.display()), image.clone()]),
    )?;
    let verify = format!("--tls-verify={}", !is_loopback(repository));
    let served = succeed(Command::new("skopeo").args(["inspect", "--raw", &verify, &image]))?;
    let found = sha256(served.as_bytes());
    ensure!(
        found == digest,
        "{image} is {found} in the registry, and {digest} in the layout"
    );
    Ok(())
}

/// Reads every byte of an image in a registry, which must have the digests that the image names.
pub(crate) fn read_whole(image: &str) -> Result<()> {
    tools::install("skopeo", &["skopeo"])?;
    let scratch = std::env::temp_dir().join(format!("metal3-image-{}", std::process::id()));
    let verify = format!("--src-tls-verify={}", !is_loopback(image));
    let outcome = succeed(
        Command::new("skopeo")
            .args(["copy", "--quiet", "--all", "--preserve-digests", &verify])
            .args([format!("docker://{image}"), format!("oci:{}:read", scratch.display())]),
    );
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("remove {}", scratch.display()))?;
    }
    outcome.map(drop).with_context(|| format!("the content of {image}"))
}

pub(crate) fn is_loopback(repository: &str) -> bool {
    ["localhost:", "localhost/", "127.0.0.1:", "[::1]:"]
        .iter()
        .any(|host| repository.starts_with(host))
}

/// Pushes the layout to a registry of this machine, copies it back, and requires that `skopeo` rejects a changed byte, and that
/// another image of a released version is not pushed.
pub(super) fn check(folder: &Path, layout: &Layout) -> Result<()> {
    let data = next_to(folder, "registry");
    let registry = Registry::start(&data)?;
    let outcome = round(folder, layout, &registry, &data).and_then(|()| released(&registry, &data));
    drop(registry);
    fs::remove_dir_all(&data).with_context(|| format!("remove {}", data.display()))?;
    outcome
}

fn round(folder: &Path, layout: &Layout, registry: &Registry, data: &Path) -> Result<()> {
    let image = pushed(folder, &format!("127.0.0.1:{}/metal3/capm3", registry.port))?;
    let back = data.join("back");
    let copy = |from: &str, to: &Path| {
        let to = format!("oci:{}:copy", to.display());
        succeed(Command::new("skopeo").args(["copy", "--quiet", "--all", "--src-tls-verify=false", from, &to]))
    };
    copy(&format!("docker://{image}"), &back)?;
    let blobs = layout.files.iter().filter(|(path, _)| path.starts_with("blobs"));
    for (path, content) in blobs {
        let copied = fs::read(back.join(path)).with_context(|| format!("{} did not come back", path.display()))?;
        ensure!(copied == *content, "{} came back with other bytes", path.display());
    }
    println!(
        "{image}: pushed and copied back, {} blobs equal",
        layout.files.len() - 2
    );
    let from_copy = format!("oci:{}:copy", back.display());
    copy(&from_copy, &data.join("unchanged")).context("copy the layers as they are")?;
    let (path, content) = largest(layout)?;
    let stored = back.join(path);
    let mut changed = content.clone();
    if let Some(last) = changed.last_mut() {
        *last ^= 1;
    }
    fs::write(&stored, changed).with_context(|| format!("write {}", stored.display()))?;
    match copy(&from_copy, &data.join("changed")) {
        Ok(_) => bail!("skopeo accepted a layer with a changed byte"),
        Err(_) => println!("a layer with a changed byte is rejected"),
    }
    Ok(())
}

/// The same image of a version may be pushed again, and another one may not.
fn released(registry: &Registry, data: &Path) -> Result<()> {
    let repository = format!("127.0.0.1:{}/metal3/released", registry.port);
    let [one, other] = ["one", "other"].map(|name| data.join(name));
    stand_in(&one, "one")?;
    stand_in(&other, "other")?;
    push(&one, &repository, false)?;
    push(&one, &repository, false).context("push the same image again")?;
    match push(&other, &repository, false) {
        Ok(_) => bail!("another image of a released version was pushed"),
        Err(error) if error.to_string().contains("raise CAPM3_PATCH") => {
            println!("another image of a released version is not pushed");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The largest file of a layout: the layer.
fn largest(layout: &Layout) -> Result<(&Path, &Vec<u8>)> {
    let largest = layout.files.iter().max_by_key(|(_, content)| content.len());
    let (path, content) = largest.context("the layout is empty")?;
    Ok((path.as_path(), content))
}

/// Debian's registry, on a free port of the loopback interface. It ends with this value.
pub(crate) struct Registry {
    process: Child,
    pub(crate) port: u16,
}

impl Registry {
    pub(crate) fn start(data: &Path) -> Result<Self> {
        tools::install("docker-registry", &["docker-registry"])?;
        fs::create_dir_all(data).with_context(|| format!("create {}", data.display()))?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
        let port = port.context("find a free port")?.port();
        let configuration = data.join("registry.yaml");
        let text = format!(
            "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\n\
             http: {{ addr: \"127.0.0.1:{port}\" }}\n",
            data.join("data").display()
        );
        fs::write(&configuration, text).with_context(|| format!("write {}", configuration.display()))?;
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("run docker-registry")?;
        let mut registry = Self { process, port };
        registry.wait()?;
        Ok(registry)
    }

    /// Waits until it accepts connections.
    fn wait(&mut self) -> Result<()> {
        const ATTEMPTS: u32 = 300;
        for _ in 0..ATTEMPTS {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait().context("wait for docker-registry")? {
                bail!("docker-registry ended with {status}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("docker-registry does not listen on 127.0.0.1:{}", self.port)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_version_stays_as_it_is_in_the_registry() {
        let at =
            |served: Served| compare("r.example/a:v1.15.0", "sha256:ab", &served).map_err(|error| error.to_string());
        assert_eq!(at(Served::Absent), Ok(()));
        assert_eq!(at(Served::Image("sha256:ab".to_owned())), Ok(()));
        let other = at(Served::Image("sha256:cd".to_owned())).unwrap_err();
        assert!(
            other.contains("sha256:cd in the registry, and here sha256:ab") && other.contains("raise CAPM3_PATCH"),
            "{other}"
        );
        let unknown = at(Served::Unknown("unauthorized".to_owned())).unwrap_err();
        assert!(
            unknown.contains("is not known") && unknown.ends_with("unauthorized"),
            "{unknown}"
        );
        require_same("v1.15.0-dev", "sha256:ab", "registry.invalid/a").unwrap();
    }

    #[test]
    fn only_an_answer_about_the_name_is_an_absence() {
        for (printed, wanted) in [
            (
                "reading manifest v1 in r.example/a: manifest unknown: manifest unknown",
                true,
            ),
            (
                "reading manifest v1 in r.example/a: name unknown: repository name not known",
                true,
            ),
            (
                "reading manifest v1 in r.example/a: unknown: artifact a:v1 not found",
                true,
            ),
            (
                "name unknown: The repository with name 'a' does not exist in the registry",
                true,
            ),
            (
                "reading manifest v1 in r.example/a: unauthorized: authentication required",
                false,
            ),
            (
                "reading manifest v1 in r.example/a: denied: requested access is denied",
                false,
            ),
            (
                "pinging container registry r.example: connect: connection refused",
                false,
            ),
            ("dial tcp: lookup r.example on 192.0.2.53:53: no such host", false),
            ("", false),
        ] {
            assert_eq!(is_absence(printed), wanted, "{printed}");
        }
    }
}
