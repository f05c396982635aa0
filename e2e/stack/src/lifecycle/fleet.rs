//! A real Ironic and the simulated machines in the stack's network, and read access to both.
//!
//! Pods reach Ironic at the Node's address. Only Ironic connects to BMCs and agents, which listen on loopback. All
//! processes run in the stack's process namespace and end with the stack.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use metal3_ironic_life::order::disk_bytes;
use serde_json::Value;

use super::mirror::{self, ImageRef};
use super::requests::{self, Request};
use crate::claims::stack::Stack;
use crate::wait::until;

/// One control plane machine, three workers, and one spare.
pub(crate) const MACHINES: usize = 5;
pub(crate) const ROOT: &str = "sda";
/// The disk without an image.
pub(super) const DATA: &str = "sdb";

const START: Duration = Duration::from_secs(60);
/// The seed and the file of each image.
const IMAGES: &[(u64, &str)] = &[(1, "os.raw"), (2, "other.raw")];

/// Ironic and the simulated machines.
#[derive(Debug, Args)]
pub(super) struct FleetOptions {
    /// The script that starts Ironic.
    #[arg(long)]
    ironic: PathBuf,
    /// The program that simulates machines.
    #[arg(long)]
    labhosts: PathBuf,
}

impl FleetOptions {
    pub(super) fn files(&self) -> [&PathBuf; 2] {
        [&self.ironic, &self.labhosts]
    }

    /// The command line of these options.
    pub(super) fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args = Vec::new();
        for (flag, path) in [("--ironic", &self.ironic), ("--labhosts", &self.labhosts)] {
            args.extend([flag.into(), std::fs::canonicalize(path)?.into()]);
        }
        Ok(args)
    }
}

/// The machines and images to provide.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) machines: usize,
    /// Images to serve at the addresses of published manifests.
    pub(crate) images: BTreeSet<ImageRef>,
    pub(crate) delays: Delays,
}

/// How slow the machines are, in milliseconds.
#[derive(Debug)]
pub(crate) struct Delays {
    pub(crate) boot: u64,
    pub(crate) step: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Self { boot: 500, step: 100 }
    }
}

/// A server with a login, from its endpoint file.
struct Endpoint {
    url: String,
    ca: String,
    username: String,
    password: String,
}

/// Ironic and the machines.
pub(crate) struct Fleet {
    ironic: Endpoint,
    lab: Endpoint,
    /// The certificate authority of Ironic.
    pub(crate) authority: PathBuf,
    /// The address of Ironic's file server.
    files: String,
    /// Its folder.
    root: PathBuf,
    /// Ironic's log, with a line per request.
    pub(crate) log: PathBuf,
    /// The machines as described by `labhosts`.
    pub(crate) machines: Vec<Value>,
    /// The disk content of each image by address; its checksum has the suffix `.sha256`.
    images: BTreeMap<String, Vec<u8>>,
}

fn text(document: &Value, member: &str) -> anyhow::Result<String> {
    let found = document[member].as_str().map(str::to_owned);
    found.with_context(|| format!("the endpoint file has no {member}"))
}

impl Endpoint {
    fn of(document: &Value, url: &str) -> anyhow::Result<Self> {
        Ok(Self {
            url: text(document, url)?,
            ca: text(document, "ca")?,
            username: text(document, "username")?,
            password: text(document, "password")?,
        })
    }

    /// Returns `None` for 404.
    fn read(&self, stack: &Stack, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        self.ask(stack, path, &[])
    }

    /// The login is passed through standard input, so that it is not in the process list.
    fn ask(&self, stack: &Stack, path: &str, how: &[&str]) -> anyhow::Result<Option<Vec<u8>>> {
        const CODE: &str = "%{stderr}%{http_code}";
        // Without it, Ironic uses its oldest version. labhosts ignores it.
        const VERSION: &str = "X-OpenStack-Ironic-API-Version: 1.68";
        let url = format!("{}{path}", self.url);
        let args = ["--silent", "--max-time", "30", "--cacert", &self.ca, "--config", "-"];
        let mut args = args.to_vec();
        args.extend(how);
        args.extend(["--header", VERSION, "--write-out", CODE, &url]);
        let login = format!("user = \"{}:{}\"\n", self.username, self.password);
        let answer = stack.output("curl", &args, Some(&login))?;
        match String::from_utf8_lossy(&answer.stderr).trim() {
            "200" | "204" => Ok(Some(answer.stdout)),
            "404" => Ok(None),
            other => anyhow::bail!("{url} answers {other} ({})", answer.status),
        }
    }
}

impl Fleet {
    /// Starts Ironic and the machines, and serves the images.
    pub(crate) fn start(stack: &Stack, options: &FleetOptions, wanted: &Wanted) -> anyhow::Result<Self> {
        let home = stack.places.cache().join("ironic/run").join(&stack.places.name);
        start_ironic(stack, &options.ironic)?;
        let document: Value = serde_json::from_slice(&fs::read(home.join("endpoint.json"))?)?;
        let ironic = Endpoint::of(&document, "url")?;
        let authority = PathBuf::from(&ironic.ca);
        let folder = stack.places.state_file("lab");
        start_machines(stack, &options.labhosts, (&authority, &folder), wanted)?;
        let lab: Value = serde_json::from_slice(&fs::read(folder.join("endpoint.json"))?)?;
        let (root, url) = (text(&document, "files_root")?, text(&document, "files_url")?);
        let mut images = BTreeMap::new();
        for (seed, file) in IMAGES {
            let image = disk_bytes(*seed);
            publish(stack, &Path::new(&root).join(file), &image)?;
            images.insert(format!("{url}/{file}"), image);
        }
        let program = mirror::Program {
            python: text(&document, "python")?.into(),
            script: options.ironic.with_file_name("file_server.py"),
        };
        let (_, first) = IMAGES[0];
        mirror::serve(stack, &program, &wanted.images, &Path::new(&root).join(first))?;
        Ok(Self {
            ironic,
            lab: Endpoint::of(&lab, "control_url")?,
            authority,
            files: url,
            root: root.into(),
            log: PathBuf::from(text(&document, "log")?),
            machines: lab["machines"].as_array().cloned().unwrap_or_default(),
            images,
        })
    }

    pub(crate) fn ironic_url(&self) -> &str {
        &self.ironic.url
    }

    /// The variables of a host manager that name the kernel and the ramdisk of the agent.
    pub(crate) fn agent(&self) -> [(&'static str, String); 2] {
        [("DEPLOY_KERNEL_URL", "kernel"), ("DEPLOY_RAMDISK_URL", "initramfs")]
            .map(|(variable, file)| (variable, format!("{}/ramdisk/{file}", self.files)))
    }

    /// User and password of Ironic, and of all BMCs.
    pub(crate) fn logins(&self) -> [(&str, &str); 2] {
        [&self.ironic, &self.lab].map(|endpoint| (endpoint.username.as_str(), endpoint.password.as_str()))
    }

    /// The address of the default image.
    pub(crate) fn image_url(&self) -> anyhow::Result<&str> {
        self.other_image(&[])
    }

    /// The address of an image that is not in the list.
    pub(crate) fn other_image(&self, than: &[String]) -> anyhow::Result<&str> {
        let mut others = self.images.keys().filter(|url| !than.contains(url));
        others.next().map(String::as_str).context("there is no other image")
    }

    pub(crate) fn image(&self, url: &str) -> anyhow::Result<&[u8]> {
        let image = self.images.get(url).with_context(|| format!("no image is at {url}"))?;
        Ok(image)
    }

    /// Offers a file of firmware for a component of the machines, and returns its address.
    pub(super) fn offer_firmware(&self, component: &str, version: &str) -> anyhow::Result<String> {
        let file = format!("{component}-{version}");
        fs::write(self.root.join(&file), format!("lab-firmware {component} {version}\n"))?;
        Ok(format!("{}/{file}", self.files))
    }

    /// The current length of Ironic's log.
    pub(crate) fn mark(&self) -> anyhow::Result<usize> {
        Ok(fs::read_to_string(&self.log)?.len())
    }

    /// The requests to Ironic since the mark.
    pub(super) fn since(&self, mark: usize) -> anyhow::Result<Vec<Request>> {
        Ok(requests::of(&self.log_since(mark)?).collect())
    }

    /// Ironic's log since the mark.
    pub(super) fn log_since(&self, mark: usize) -> anyhow::Result<String> {
        let log = fs::read_to_string(&self.log)?;
        Ok(log.get(mark..).unwrap_or_default().to_owned())
    }

    pub(crate) fn nodes(&self, stack: &Stack) -> anyhow::Result<Vec<Value>> {
        let path = "/v1/nodes?fields=uuid,name,provision_state,power_state,last_error,maintenance";
        let listed = self.ironic.read(stack, path)?.context("Ironic has no nodes")?;
        let mut listed: Value = serde_json::from_slice(&listed)?;
        Ok(listed["nodes"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// All machines with power state, running system and disks.
    pub(crate) fn machine_states(&self, stack: &Stack) -> anyhow::Result<Vec<Value>> {
        let seen = self.lab.read(stack, "/lab")?.context("there are no machines")?;
        let mut seen: Value = serde_json::from_slice(&seen)?;
        Ok(seen["machines"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Replaces the faults of a machine, in the JSON of labhosts.
    pub(crate) fn break_machine(&self, stack: &Stack, machine: u32, faults: &[Value]) -> anyhow::Result<()> {
        let body = Value::from(faults).to_string();
        self.put(stack, &format!("/lab/machines/{machine}/faults"), &body)
    }

    fn put(&self, stack: &Stack, path: &str, body: &str) -> anyhow::Result<()> {
        let json = "Content-Type: application/json";
        let how = ["--request", "PUT", "--header", json, "--data", body];
        let done = self.lab.ask(stack, path, &how)?;
        done.map(drop).with_context(|| format!("{path} does not exist"))
    }

    /// Writes a text to a machine's disk for data, as its system does.
    pub(super) fn write_data(&self, stack: &Stack, machine: u64, text: &str) -> anyhow::Result<()> {
        self.put(stack, &format!("/lab/machines/{machine}/disks/{DATA}"), text)
    }

    /// The content of a machine's disk for data; `None` when it is blank.
    pub(super) fn data(&self, stack: &Stack, machine: u64) -> anyhow::Result<Option<Vec<u8>>> {
        self.lab.read(stack, &format!("/lab/machines/{machine}/disks/{DATA}"))
    }

    /// The number of writes to disks, over all machines.
    pub(crate) fn written(&self, stack: &Stack) -> anyhow::Result<u64> {
        let machines = self.machine_states(stack)?;
        let each = machines.iter().map(|machine| machine["writes"].as_u64());
        each.sum::<Option<u64>>()
            .context("a machine without a number of writes")
    }

    /// The content of a disk; `None` when it is blank.
    pub(crate) fn disk(&self, stack: &Stack, machine: u64) -> anyhow::Result<Option<Vec<u8>>> {
        self.lab.read(stack, &format!("/lab/machines/{machine}/disks/{ROOT}"))
    }

    /// A file of the config-drive; `None` when the file or the drive does not exist.
    pub(crate) fn drive(&self, stack: &Stack, machine: u64, file: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let path = format!("/lab/machines/{machine}/disks/{ROOT}/config-drive/openstack/latest/{file}");
        self.lab.read(stack, &path)
    }
}

/// Ironic's script finds its processes by number, so `/proc` must be that of the process namespace.
fn start_ironic(stack: &Stack, script: &Path) -> anyhow::Result<()> {
    let variables = [
        format!("IP={}", stack.places.node_address()),
        format!("INSTANCE={}", stack.places.name),
        format!("CACHE={}", stack.places.cache().display()),
    ];
    let mut args = vec!["--mount-proc", "env"];
    args.extend(variables.iter().map(String::as_str));
    let script = script.to_str().context("the script's name is not text")?;
    args.extend([script, "up"]);
    stack.run("unshare", &args, None).map(drop)
}

fn start_machines(
    stack: &Stack,
    program: &Path,
    (authority, folder): (&Path, &Path),
    wanted: &Wanted,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let log = File::create(stack.places.log("labhosts"))?;
    let machines = format!("storage={}", wanted.machines);
    let delays = [wanted.delays.boot, wanted.delays.step].map(|delay| delay.to_string());
    let [boot, step] = delays.each_ref().map(String::as_str);
    let mut args: Vec<OsString> = ["--machines", &machines, "--boot-delay", boot, "--step-delay", step]
        .map(Into::into)
        .to_vec();
    args.push("--ironic-ca".into());
    args.extend([authority.into(), "--data".into(), folder.into()]);
    for digest in mirror::trusted_checksums(&wanted.images) {
        args.extend(["--accept-digest".into(), digest.into()]);
    }
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    until(START, "the machines", || {
        let ended = child.try_wait()?;
        ensure!(ended.is_none(), "labhosts ended, see its log");
        Ok(folder.join("endpoint.json").exists().then_some(()))
    })
}

/// Writes an image and its checksum for Ironic's file server.
fn publish(stack: &Stack, path: &Path, image: &[u8]) -> anyhow::Result<()> {
    fs::write(path, image)?;
    mirror::write_sum(stack, "sha256sum", path, &path.with_extension("raw.sha256"))
}
