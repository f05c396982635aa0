//! Claims about images by digest: pulled from the registry of the stack, compared with each digest, unpacked and run.
//!
//! The images are written by `umoci` and pushed by `skopeo`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::containers::{holds, waiting};
use super::stack::{Stack, about, file, is_ready, pod, test_server};
use crate::claim::Proof;
use crate::registry;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Where the image has its program, and a file of its own.
const PROGRAM: &str = "/server/run";
const OWN: &str = "/own/name";
const USER: &str = "4321";
/// The reason of a container whose image cannot be pulled.
const NOT_PULLED: &str = "ImagePullBackOff";

/// An image in the registry.
struct Image {
    /// `HOST/NAME@sha256:…`, of the index.
    name: String,
    /// What a Pod's start reads, in this order, with the digest of each.
    contents: Vec<(&'static str, String)>,
}

impl Image {
    /// Two layers, the second with a file that no other image has, and an index for this machine's architecture.
    fn pushed(stack: &Stack, name: &str) -> anyhow::Result<Self> {
        let folder = stack.places.state_file("suite-images").join(name);
        fs::create_dir_all(&folder)?;
        let own = folder.join("own");
        fs::write(&own, name)?;
        let layout = folder.join("layout");
        written(stack, &layout, &own)?;
        let repository = format!("{}/suite/{name}", registry::ADDRESS);
        let tagged = format!("docker://{repository}:v1");
        let from = format!("oci:{}:v1", layout.display());
        stack.run(
            "skopeo",
            &["copy", "--quiet", "--dest-tls-verify=false", &from, &tagged],
            None,
        )?;
        let inspect = |what: &str| stack.run("skopeo", &["inspect", "--tls-verify=false", what, &tagged], None);
        let manifest = inspect("--raw")?;
        let digest = inspect("--format={{.Digest}}")?.trim().to_owned();
        let described: Value = serde_json::from_str(&manifest)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let layers = described["layers"].as_array().context("a manifest without layers")?;
        ensure!(layers.len() == 2, "{} layers", layers.len());
        let index = index(&digest, manifest.len(), &architecture(stack)?);
        let index = put(
            stack,
            &format!("http://{}/v2/suite/{name}/manifests/index", registry::ADDRESS),
            &index,
        )?;
        Ok(Self {
            name: format!("{repository}@{index}"),
            contents: vec![
                ("index", index),
                ("manifest", digest),
                ("configuration", text(&described["config"]["digest"])),
                ("layer", text(&layers[1]["digest"])),
            ],
        })
    }

    fn pod(&self, name: &str) -> Value {
        pod(name, test_server(json!({"image": self.name})))
    }
}

/// Writes the image of the test server as an OCI layout.
fn written(stack: &Stack, layout: &Path, own: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe()?.with_file_name("test-server");
    let (layout, program, own) = (
        layout.to_string_lossy(),
        program.to_string_lossy(),
        own.to_string_lossy(),
    );
    let image = format!("{layout}:v1");
    let user = format!("--config.user={USER}:{USER}");
    let entry = format!("--config.entrypoint={PROGRAM}");
    let steps: [&[&str]; 5] = [
        &["init", "--layout", &layout],
        &["new", "--image", &image],
        &["insert", "--rootless", "--image", &image, &program, PROGRAM],
        &["insert", "--rootless", "--image", &image, &own, OWN],
        &[
            "config",
            "--image",
            &image,
            &entry,
            &user,
            "--config.env=FROM=image",
            "--config.workingdir=/own",
        ],
    ];
    for step in steps {
        stack.run("umoci", step, None)?;
    }
    Ok(())
}

/// The architecture of the Node, which images name.
fn architecture(stack: &Stack) -> anyhow::Result<String> {
    let path = "--output=jsonpath={.items[0].status.nodeInfo.architecture}";
    stack.kubectl(&["get", "nodes", path])
}

fn index(digest: &str, size: usize, architecture: &str) -> Value {
    let platform = json!({"os": "linux", "architecture": architecture});
    let entry = json!({"mediaType": MANIFEST, "digest": digest, "size": size, "platform": platform});
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]})
}

/// Writes an index, and returns the digest that the registry gives it.
fn put(stack: &Stack, url: &str, index: &Value) -> anyhow::Result<String> {
    let kind = format!("Content-Type: {INDEX}");
    let args = [
        "--silent",
        "--show-error",
        "--fail",
        "--dump-header",
        "-",
        "--request",
        "PUT",
    ];
    let args = [&args[..], &["--header", &kind, "--data-binary", "@-", url]].concat();
    let answer = stack.run("curl", &args, Some(&index.to_string()))?;
    let mut fields = answer.lines().filter_map(|line| line.split_once(": "));
    let digest = fields.find(|(name, _)| name.eq_ignore_ascii_case("docker-content-digest"));
    Ok(digest.context("the registry named no digest")?.1.trim().to_owned())
}

pub(super) fn an_image_by_digest_is_pulled_unpacked_and_run_as_it_says(stack: &Stack) -> Proof {
    let image = Image::pushed(stack, "pulled")?;
    let namespace = stack.create_namespace("pulled")?;
    namespace.apply(&image.pod("plain"))?;
    let plain = namespace.until("pod/plain", "ready", is_ready)?;
    namespace.event("Pulled", &image.name)?;
    let report = about(&plain)?;
    ensure!(
        report["arguments"] == json!([PROGRAM]) && report["folder"] == "/own",
        "{report}"
    );
    ensure!(
        report["variables"]["FROM"] == "image" && report["user"] == USER,
        "{report}"
    );
    ensure!(file(&plain, OWN)? == "pulled", "{OWN} is not that of the image");
    // The Pod's own words come first.
    let own = json!({"image": image.name, "command": [PROGRAM, "--"], "workingDir": "/elsewhere",
        "securityContext": {"runAsUser": 77}, "env": [{"name": "FROM", "value": "Pod"}]});
    let report = about(&namespace.ready_pod("own", test_server(own))?)?;
    ensure!(
        report["arguments"] == json!([PROGRAM, "--"]) && report["folder"] == "/elsewhere",
        "{report}"
    );
    ensure!(
        report["variables"]["FROM"] == "Pod" && report["user"] == "77",
        "{report}"
    );
    // What the image does not have cannot be run, whatever the table has.
    namespace.apply(&pod(
        "absent",
        test_server(json!({"image": image.name, "command": ["/test-server"]})),
    ))?;
    namespace.until("pod/absent", "in back-off", |pod| waiting(pod).0 == "CrashLoopBackOff")?;
    holds()
}

/// The registry itself refuses to send a changed index or manifest, so all four are also changed on their way.
pub(super) fn a_changed_byte_of_an_image_is_refused_wherever_it_is(stack: &Stack) -> Proof {
    let image = Image::pushed(stack, "changed")?;
    let namespace = stack.create_namespace("changed")?;
    let refused = |name: &str, what: &str, digest: &str| {
        let wanted = format!("{digest} came with the digest sha256:");
        let is = |pod: &Value| waiting(pod).0 == NOT_PULLED && waiting(pod).1.contains(&wanted);
        namespace.until(&format!("pod/{name}"), &format!("refused for its {what}"), is)
    };
    for (what, digest) in &image.contents {
        let through = Between::start(digest.clone())?;
        let name = image.name.replace(registry::ADDRESS, &through.address);
        namespace.apply(&pod(what, test_server(json!({"image": name}))))?;
        refused(what, what, digest)?;
        namespace.kubectl(&["delete", "pod", what, "--timeout=30s"])?;
    }
    let (what, layer) = image.contents.last().context("an image without contents")?;
    let path = registry::stored(&stack.places, layer)?;
    let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    fs::write(&path, changed(content.clone()))?;
    namespace.apply(&image.pod("stored"))?;
    refused("stored", what, layer)?;
    namespace.event("Failed", "came with the digest")?;
    // It starts once the registry has the right bytes again.
    fs::write(&path, content)?;
    namespace.until("pod/stored", "ready", is_ready)?;
    Ok(format!(
        "{} contents on their way, a {what} on the disk",
        image.contents.len()
    ))
}

/// Passes requests on to the registry, and changes a byte of the content with this digest.
struct Between {
    address: String,
}

impl Between {
    /// It serves until the suite ends.
    fn start(digest: String) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("opening a port")?;
        let address = listener.local_addr()?.to_string();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A broken connection is an answer that the kubelet reports.
                pass(client, &digest).unwrap_or_default();
            }
        });
        Ok(Self { address })
    }
}

fn pass(mut client: TcpStream, digest: &str) -> anyhow::Result<()> {
    let mut head = Vec::new();
    let mut lines = BufReader::new(client.try_clone()?);
    while !head.ends_with(b"\r\n\r\n") && lines.read_until(b'\n', &mut head)? > 0 {}
    let head = String::from_utf8(head)?.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let mut registry = TcpStream::connect(registry::ADDRESS)?;
    registry.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    registry.read_to_end(&mut answer)?;
    if head.lines().next().is_some_and(|line| line.contains(digest)) {
        answer = changed(answer);
    }
    client.write_all(&answer).map_err(Into::into)
}

/// The content with another last digit, so that a document can be read as before; without a digit, with another last byte.
fn changed(mut content: Vec<u8>) -> Vec<u8> {
    let at = content
        .iter()
        .rposition(u8::is_ascii_digit)
        .unwrap_or(content.len().saturating_sub(1));
    if let Some(byte) = content.get_mut(at) {
        *byte ^= 1;
    }
    content
}

pub(super) fn an_image_that_cannot_be_pulled_is_waited_for_with_a_reason(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("unknown")?;
    let none = format!("sha256:{}", "0".repeat(64));
    for (name, image, reason, message) in [
        (
            "unknown",
            format!("{}/suite/pulled@{none}", registry::ADDRESS),
            NOT_PULLED,
            "the registry answered 404",
        ),
        (
            "closed",
            format!("127.0.0.1:9/suite/pulled@{none}"),
            NOT_PULLED,
            "asking for http://127.0.0.1:9/v2/suite/pulled/manifests/",
        ),
        (
            "elsewhere",
            format!("registry.example/test-server@{none}"),
            "InvalidImageName",
            "registry.example is not a registry of this machine",
        ),
    ] {
        namespace.apply(&pod(name, test_server(json!({"image": image}))))?;
        let said = |pod: &Value| waiting(pod).0 == reason && waiting(pod).1.contains(message);
        namespace.until(&format!("pod/{name}"), reason, said)?;
    }
    // A Pod that waits for its image can be deleted.
    namespace.kubectl(&["delete", "pod", "unknown", "--timeout=30s"])?;
    holds()
}
