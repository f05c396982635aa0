//! The claim about the program of the image: a static binary. It runs in a read-only root directory with only that file, a
//! kubeconfig and the address of a name server; there is no loader, no library, no shell and no `/proc`.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::manager::{LONG, NAMESPACE};
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::namespaces;
use crate::wait::until;

/// A name in the API server's certificate that only the test's name server resolves.
const HOST: &str = "kubernetes.default.svc";
const USER: u32 = 65532;
/// The address of its probes, in the stack's network, where it does not collide with Pods.
const PROBES: &str = "127.0.0.1:9440";
/// All files in its root.
const CONTENT: [&str; 3] = ["capm3", "etc/resolv.conf", "kubeconfig"];

pub(super) fn runs(stack: &Stack, candidate: &Candidate) -> Proof {
    let names = NameServer::of(stack.places.node_address().parse()?);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).context("opening the port of a name server")?;
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| names.serve(&socket));
        let proof = watch(stack, candidate);
        names.stopped.store(true, Ordering::Relaxed);
        serving
            .join()
            .map_err(|_| anyhow::anyhow!("the name server panicked"))??;
        let queries = names.queries.load(Ordering::Relaxed);
        let proof = proof?;
        ensure!(queries > 0, "{HOST} was not resolved");
        Ok(format!("{proof}, {queries} queries for {HOST}"))
    })
}

/// Waits until it is ready, that is, each watch has been served over TLS; then checks user, mounts and files.
fn watch(stack: &Stack, candidate: &Candidate) -> Proof {
    let program = Program::start(stack, candidate)?;
    let url = format!("http://{PROBES}/readyz");
    until(LONG, "the program to be ready", || {
        stack
            .run("curl", &["--silent", "--fail", "--max-time", "10", &url], None)
            .map(Some)
    })
    .with_context(|| program.output())?;
    let number = program.number()?;
    let status = fs::read_to_string(format!("/proc/{number}/status")).context("reading its status")?;
    let users = line(&status, "Uid:").context("a status without users")?;
    let expected = if has_single_user()? { 0 } else { USER };
    ensure!(
        users.split_whitespace().all(|user| user == expected.to_string()),
        "it runs as {users}"
    );
    let mounts = fs::read_to_string(format!("/proc/{number}/mountinfo")).context("reading its mounts")?;
    ensure!(is_sealed(&mounts), "its root can be written to: {mounts}");
    let root = PathBuf::from(format!("/proc/{number}/root"));
    let mut content = Vec::new();
    collect(&root, &root, &mut content)?;
    content.sort();
    ensure!(content == CONTENT, "in its root: {content:?}");
    let size = fs::metadata(candidate.program())?.len() / 1_000_000;
    Ok(format!("user {USER}, {size} MB"))
}

/// The running program; dropping it kills it.
struct Program {
    outer: Child,
    log: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.outer.kill());
        drop(self.outer.wait());
    }
}

impl Program {
    fn start(stack: &Stack, candidate: &Candidate) -> anyhow::Result<Self> {
        let folder = stack.places.state_file("empty-root");
        fs::create_dir_all(folder.join("root"))?;
        fs::write(folder.join("kubeconfig"), kubeconfig(stack)?)?;
        fs::write(folder.join("resolv.conf"), "nameserver 127.0.0.1\n")?;
        let log = stack.places.log("empty-root");
        let file = fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "/bin/sh", "-e", "-c", SCRIPT, "sh"]);
        command.args([&folder, candidate.program()]);
        command.args(become_user()?).arg("/capm3");
        command.args(["--controllers=ipam", "--observe-only", "--kubeconfig=/kubeconfig"]);
        command.args(["--diagnostics-address=0", &format!("--health-addr={PROBES}")]);
        command.env("POD_NAMESPACE", NAMESPACE).stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        let outer = command.spawn().context("running unshare")?;
        Ok(Self { outer, log })
    }

    /// Its process id: the descendant of this process with its name.
    fn number(&self) -> anyhow::Result<u32> {
        let own = fs::read_link("/proc/self").context("reading /proc/self")?;
        let own: u32 = own.to_string_lossy().parse().context("the number of this process")?;
        let program = namespaces::descendants(own).into_iter().find(|number| {
            let name = fs::read_to_string(format!("/proc/{number}/comm"));
            name.is_ok_and(|name| name.trim() == "capm3")
        });
        program.context("the program has ended")
    }

    fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Copies the files into a new root, makes it read-only and runs the remaining arguments in it.
const SCRIPT: &str = r#"
folder=$1; program=$2; shift 2
mount -t tmpfs -o mode=755,size=256m root "$folder/root"
cd "$folder/root"
mkdir etc
cp "$program" capm3; cp ../kubeconfig kubeconfig; cp ../resolv.conf etc/resolv.conf
chmod 555 capm3; chmod 444 kubeconfig etc/resolv.conf
mount -o remount,ro "$folder/root"
cd /; cd "$folder/root"
exec "$@"
"#;

/// The arguments that change root and user. An ordinary user's stack has one user, which is mapped in another namespace.
fn become_user() -> anyhow::Result<Vec<String>> {
    let args = if has_single_user()? {
        format!("unshare --user --map-user={USER} --map-group={USER} --root=.")
    } else {
        format!("chroot --userspec={USER}:{USER} --groups= .")
    };
    Ok(args.split_whitespace().map(str::to_owned).collect())
}

/// Whether this user namespace has a single user.
fn has_single_user() -> anyhow::Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map").context("reading the map of users")?;
    let counts = map.lines().filter_map(|row| row.split_whitespace().nth(2));
    Ok(counts.filter_map(|count| count.parse::<u64>().ok()).sum::<u64>() <= 1)
}

/// The kubeconfig with embedded files, and with a name instead of the address.
fn kubeconfig(stack: &Stack) -> anyhow::Result<String> {
    let flat = stack.kubectl(&["config", "view", "--raw", "--flatten", "--minify"])?;
    let address = format!("https://{}:6443", stack.places.node_address());
    ensure!(flat.contains(&address), "the kubeconfig does not name {address}");
    Ok(flat.replace(&address, &format!("https://{HOST}:6443")))
}

fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Whether the last mount of the root is read-only. Fields: number, parent, device, root, mount point, options.
fn is_sealed(mounts: &str) -> bool {
    let mut at_root = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(4);
        (fields.next() == Some("/")).then(|| fields.next()).flatten()
    });
    at_root
        .next_back()
        .is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

/// Files below a directory, relative to the root.
fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(path.strip_prefix(root)?.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

#[derive(Debug)]
struct NameServer {
    address: Ipv4Addr,
    queries: AtomicUsize,
    stopped: AtomicBool,
}

impl NameServer {
    fn of(address: Ipv4Addr) -> Self {
        Self {
            address,
            queries: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    fn serve(&self, socket: &UdpSocket) -> anyhow::Result<()> {
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let mut buffer = [0_u8; 512];
        while !self.stopped.load(Ordering::Relaxed) {
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let question = buffer.get(..length).unwrap_or_default();
                    if let Some(answer) = answer(question, self.address)? {
                        socket.send_to(&answer, from)?;
                        self.queries.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => bail!("receiving a question: {error}"),
            }
        }
        Ok(())
    }
}

/// Length of a DNS message header.
const HEADER: usize = 12;
/// The type of an address record.
const A: [u8; 2] = [0, 1];

/// The response to a query for the name: its address, or no records of that type. Other names get no response, so that the
/// lookup fails.
fn answer(message: &[u8], address: Ipv4Addr) -> anyhow::Result<Option<Vec<u8>>> {
    let wanted: Vec<u8> = HOST.split('.').flat_map(label).chain([0]).collect();
    let Some(rest) = message
        .get(HEADER..)
        .and_then(|rest| rest.strip_prefix(wanted.as_slice()))
    else {
        return Ok(None);
    };
    let (Some(number), Some(kind), Some(class)) = (message.get(..2), rest.get(..2), rest.get(2..4)) else {
        return Ok(None);
    };
    let has_address = kind == A;
    let mut answer = number.to_vec();
    // A response, recursion desired and available; one question, the answers, nothing more.
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
    answer.extend(wanted);
    answer.extend([kind, class].concat());
    if has_address {
        // The name of the question, type, class, TTL of a minute, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address.octets());
    }
    Ok(Some(answer))
}

fn label(word: &str) -> Vec<u8> {
    let length = u8::try_from(word.len()).unwrap_or_default();
    [&[length], word.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);

    fn question(kind: u8) -> Vec<u8> {
        let mut question = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        question.extend(b"\x0akubernetes\x07default\x03svc\x00");
        question.extend([0, kind, 0, 1]);
        question
    }

    #[test]
    fn name_server_resolves_one_name_and_one_type() {
        let reply = answer(&question(1), NODE).unwrap().unwrap();
        assert_eq!(reply[..8], [7, 9, 0x81, 0x80, 0, 1, 0, 1]);
        assert_eq!(reply[reply.len() - 4..], [10, 244, 0, 1]);
        let none = answer(&question(28), NODE).unwrap().unwrap();
        assert_eq!((none[7], none.len()), (0, question(28).len()));
        let mut other = question(1);
        other[13] = b'x';
        assert_eq!(answer(&other, NODE).unwrap(), None);
        for length in 0..question(1).len() {
            assert!(answer(&question(1)[..length], NODE).unwrap().is_none(), "{length}");
        }
    }

    #[test]
    fn last_mount_of_the_root_counts() {
        let row = |place: &str, options: &str| format!("1 2 0:1 / {place} {options} - tmpfs x rw\n");
        assert!(is_sealed(&(row("/", "rw") + &row("/", "ro,relatime"))));
        assert!(!is_sealed(&(row("/", "ro") + &row("/", "rw,ro_not"))));
        assert!(!is_sealed(&row("/etc", "ro")));
    }
}
