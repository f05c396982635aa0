//! The metal side: a real Ironic and the machines it works on, in the stack's network, and a look at both.
//!
//! Pods reach Ironic at the Node's address. BMCs and agents are asked by Ironic alone and stay on loopback. All of it is
//! started in the stack's process namespace and ends with the stack.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::mirror::Ordered;
use super::requests::{self, Request};
use super::{Metal, mirror};
use crate::claims::world::World;
use crate::wait::until;

/// One control plane machine, three workers, and one that is free whatever happens.
pub(crate) const MACHINES: usize = 5;
/// The disk that machines boot from.
pub(crate) const ROOT: &str = "sda";

const START: Duration = Duration::from_secs(60);
const IMAGE_BYTES: usize = 1 << 20;
/// What each image begins its bytes with, and its file.
const IMAGES: &[(u64, &str)] = &[(1, "os.raw"), (2, "other.raw")];

/// What there is to be beside Ironic.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) machines: usize,
    /// Images to be found where others have published that they are.
    pub(crate) images: BTreeSet<Ordered>,
}

/// A server with a login, as its endpoint file names it.
struct Door {
    url: String,
    ca: String,
    username: String,
    password: String,
}

/// Ironic and the machines.
pub(crate) struct Fleet {
    ironic: Door,
    lab: Door,
    /// Authority of Ironic's certificate.
    pub(crate) authority: PathBuf,
    /// Ironic's log, which holds a line for each request.
    pub(crate) log: PathBuf,
    /// The machines, as `labhosts` describes them.
    pub(crate) machines: Vec<Value>,
    /// What disks are to hold, by where it is fetched; checksums lie beside, with `.sha256` behind the name.
    images: BTreeMap<String, Vec<u8>>,
}

fn text(document: &Value, member: &str) -> anyhow::Result<String> {
    let found = document[member].as_str().map(str::to_owned);
    found.with_context(|| format!("the endpoint file names no {member}"))
}

impl Door {
    fn of(document: &Value, url: &str) -> anyhow::Result<Self> {
        Ok(Self {
            url: text(document, url)?,
            ca: text(document, "ca")?,
            username: text(document, "username")?,
            password: text(document, "password")?,
        })
    }

    /// None where the server says that there is no such thing.
    fn read(&self, world: &World, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        self.ask(world, path, &[])
    }

    /// The login goes through standard input: no list of processes shows it.
    fn ask(&self, world: &World, path: &str, how: &[&str]) -> anyhow::Result<Option<Vec<u8>>> {
        const CODE: &str = "%{stderr}%{http_code}";
        // Without it, Ironic speaks the oldest version it knows. Machines do not look.
        const VERSION: &str = "X-OpenStack-Ironic-API-Version: 1.68";
        let url = format!("{}{path}", self.url);
        let words = ["--silent", "--max-time", "30", "--cacert", &self.ca, "--config", "-"];
        let mut words = words.to_vec();
        words.extend(how);
        words.extend(["--header", VERSION, "--write-out", CODE, &url]);
        let login = format!("user = \"{}:{}\"\n", self.username, self.password);
        let answer = world.output("curl", &words, Some(&login))?;
        match String::from_utf8_lossy(&answer.stderr).trim() {
            "200" | "204" => Ok(Some(answer.stdout)),
            "404" => Ok(None),
            other => anyhow::bail!("{url} answers {other} ({})", answer.status),
        }
    }
}

impl Fleet {
    /// Ironic, and what is wanted beside it.
    pub(crate) fn start(world: &World, metal: &Metal, wanted: &Wanted) -> anyhow::Result<Self> {
        let home = world.places.cache().join("ironic/run").join(&world.places.name);
        start_ironic(world, &metal.ironic)?;
        let document: Value = serde_json::from_slice(&fs::read(home.join("endpoint.json"))?)?;
        let ironic = Door::of(&document, "url")?;
        let authority = PathBuf::from(&ironic.ca);
        let folder = world.places.state_file("lab");
        start_machines(world, &metal.labhosts, (&authority, &folder), wanted)?;
        let lab: Value = serde_json::from_slice(&fs::read(folder.join("endpoint.json"))?)?;
        let (root, url) = (text(&document, "files_root")?, text(&document, "files_url")?);
        let mut images = BTreeMap::new();
        for (seed, file) in IMAGES {
            let image = disk_bytes(*seed);
            publish(world, &Path::new(&root).join(file), &image)?;
            images.insert(format!("{url}/{file}"), image);
        }
        let program = mirror::Program {
            python: text(&document, "python")?.into(),
            script: metal.ironic.with_file_name("file_server.py"),
        };
        let (_, first) = IMAGES[0];
        mirror::serve(world, &program, &wanted.images, &Path::new(&root).join(first))?;
        Ok(Self {
            ironic,
            lab: Door::of(&lab, "control_url")?,
            authority,
            log: PathBuf::from(text(&document, "log")?),
            machines: lab["machines"].as_array().cloned().unwrap_or_default(),
            images,
        })
    }

    pub(crate) fn ironic_url(&self) -> &str {
        &self.ironic.url
    }

    /// User and password of Ironic, and of every BMC.
    pub(crate) fn logins(&self) -> [(&str, &str); 2] {
        [&self.ironic, &self.lab].map(|door| (door.username.as_str(), door.password.as_str()))
    }

    /// Where the image is that machines are given at first.
    pub(crate) fn image_url(&self) -> anyhow::Result<&str> {
        self.other_image(&[])
    }

    /// Where an image is that is none of these.
    pub(crate) fn other_image(&self, than: &[String]) -> anyhow::Result<&str> {
        let mut others = self.images.keys().filter(|url| !than.contains(url));
        others.next().map(String::as_str).context("there is no other image")
    }

    /// The bytes of an image.
    pub(crate) fn image(&self, url: &str) -> anyhow::Result<&[u8]> {
        let image = self.images.get(url).with_context(|| format!("no image is at {url}"))?;
        Ok(image)
    }

    /// Where in its log Ironic is.
    pub(crate) fn mark(&self) -> anyhow::Result<usize> {
        Ok(fs::read_to_string(&self.log)?.len())
    }

    /// What Ironic was asked since then.
    pub(super) fn since(&self, mark: usize) -> anyhow::Result<Vec<Request>> {
        Ok(requests::of(&self.said_since(mark)?).collect())
    }

    /// What Ironic wrote down since then.
    pub(super) fn said_since(&self, mark: usize) -> anyhow::Result<String> {
        let log = fs::read_to_string(&self.log)?;
        Ok(log.get(mark..).unwrap_or_default().to_owned())
    }

    /// What Ironic says of all nodes.
    pub(crate) fn nodes(&self, world: &World) -> anyhow::Result<Vec<Value>> {
        let path = "/v1/nodes?fields=uuid,name,provision_state,power_state,last_error,maintenance";
        let listed = self.ironic.read(world, path)?.context("Ironic has no nodes")?;
        let mut listed: Value = serde_json::from_slice(&listed)?;
        Ok(listed["nodes"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// All machines with their power, what they run, and what their disks hold.
    pub(crate) fn look(&self, world: &World) -> anyhow::Result<Vec<Value>> {
        let seen = self.lab.read(world, "/lab")?.context("there are no machines")?;
        let mut seen: Value = serde_json::from_slice(&seen)?;
        Ok(seen["machines"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Makes this all that is wrong with a machine, in the words of who plays machines.
    pub(crate) fn break_machine(&self, world: &World, machine: u32, faults: &[Value]) -> anyhow::Result<()> {
        let (path, body) = (
            format!("/lab/machines/{machine}/faults"),
            Value::from(faults).to_string(),
        );
        let how = [
            "--request",
            "PUT",
            "--header",
            "Content-Type: application/json",
            "--data",
            &body,
        ];
        let done = self.lab.ask(world, &path, &how)?;
        done.map(drop).with_context(|| format!("there is no machine {machine}"))
    }

    /// How often disks were written since the beginning, all machines together.
    pub(crate) fn written(&self, world: &World) -> anyhow::Result<u64> {
        let machines = self.look(world)?;
        let each = machines.iter().map(|machine| machine["writes"].as_u64());
        each.sum::<Option<u64>>()
            .context("a machine does not say how often it was written")
    }

    /// What a disk holds; none when it is blank.
    pub(crate) fn disk(&self, world: &World, machine: u64) -> anyhow::Result<Option<Vec<u8>>> {
        self.lab.read(world, &format!("/lab/machines/{machine}/disks/{ROOT}"))
    }

    /// A file of the config-drive; none where there is no such file, or no drive.
    pub(crate) fn drive(&self, world: &World, machine: u64, file: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let path = format!("/lab/machines/{machine}/disks/{ROOT}/config-drive/openstack/latest/{file}");
        self.lab.read(world, &path)
    }
}

/// Ironic finds its processes by number: it must see those of the namespace that they live in.
fn start_ironic(world: &World, script: &Path) -> anyhow::Result<()> {
    let variables = [
        format!("IP={}", world.places.node_address()),
        format!("INSTANCE={}", world.places.name),
        format!("CACHE={}", world.places.cache().display()),
    ];
    let mut words = vec!["--mount-proc", "env"];
    words.extend(variables.iter().map(String::as_str));
    let script = script.to_str().context("the script's name is not text")?;
    words.extend([script, "up"]);
    world.run("unshare", &words, None).map(drop)
}

fn start_machines(
    world: &World,
    program: &Path,
    (authority, folder): (&Path, &Path),
    wanted: &Wanted,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let log = File::create(world.places.log("labhosts"))?;
    let machines = format!("small={}", wanted.machines);
    let mut words: Vec<OsString> = ["--machines", &machines, "--boot-delay", "500", "--ironic-ca"]
        .map(Into::into)
        .to_vec();
    words.extend([authority.into(), "--data".into(), folder.into()]);
    for digest in mirror::believed(&wanted.images) {
        words.extend(["--believe".into(), digest.into()]);
    }
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    until(START, "the machines", || {
        let ended = child.try_wait()?;
        ensure!(ended.is_none(), "they ended, see the log of labhosts");
        Ok(folder.join("endpoint.json").exists().then_some(()))
    })
}

/// An image where Ironic fetches it, and its checksum.
fn publish(world: &World, path: &Path, image: &[u8]) -> anyhow::Result<()> {
    fs::write(path, image)?;
    mirror::write_sum(world, "sha256sum", path, &path.with_extension("raw.sha256"))
}

/// A boot sector with one partition, which Ironic looks for, then bytes that are the same in each run.
fn disk_bytes(seed: u64) -> Vec<u8> {
    const PARTITION: [u8; 16] = [0x80, 0, 2, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 0xff, 7, 0, 0];
    let mut bytes = vec![0; 446];
    bytes.extend(PARTITION);
    bytes.resize(510, 0);
    bytes.extend([0x55, 0xaa]);
    let mut state = seed;
    while bytes.len() < IMAGE_BYTES {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend((state >> 32).to_be_bytes());
    }
    bytes.truncate(IMAGE_BYTES);
    bytes
}
