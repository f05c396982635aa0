//! From a container's manifest to the exact script that builds its root folder and becomes it.
//!
//! The script runs as the first process of new mount and process namespaces, inside the Pod's network. It uses `mount`,
//! `setpriv` and `unshare` of the machine and nothing else, so what a container sees can be read off its plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use super::environment::expand;
use super::user::{Identity, Users, identity};

/// Folders of the machine that every container sees, read-only: dynamic programs find their loader and libraries.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// Files of the machine's `/etc` that programs may need and that say nothing about the machine.
const SYSTEM_FILES: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/alternatives",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Where the image's program is if the manifest does not say.
const ENTRYPOINT: &str = "/entrypoint";
/// The root folder is memory: a container that fills it must not fill the machine.
const ROOT_SIZE: &str = "64m";

/// A folder or file of the machine at a place of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) from: PathBuf,
    pub(crate) to: String,
    pub(crate) read_only: bool,
}

/// All that distinguishes one container from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) binary: PathBuf,
    pub(crate) binary_at: String,
    pub(crate) command: Vec<String>,
    pub(crate) folder: String,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) files: BTreeMap<&'static str, String>,
    pub(crate) identity: Identity,
    pub(crate) users: Users,
    pub(crate) read_only_root: bool,
    pub(crate) keeps_capabilities: bool,
    pub(crate) no_new_privileges: bool,
}

/// What the kubelet adds to the manifest.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) root: PathBuf,
    /// Folder of the Pod's volumes, by volume name.
    pub(crate) volumes: &'a Path,
    pub(crate) binary: PathBuf,
    pub(crate) pod_address: &'a str,
    pub(crate) users: Users,
    pub(crate) log: PathBuf,
}

/// Plans a container whose Pod was not refused.
pub(crate) fn plan(
    pod: &Pod,
    spec: &PodSpec,
    container: &Container,
    variables: &BTreeMap<String, String>,
    ground: Ground<'_>,
) -> Sandbox {
    let (binary_at, command) = command(container, variables);
    let own = container.security_context.as_ref();
    let dropped = own
        .and_then(|own| own.capabilities.as_ref())
        .and_then(|capabilities| capabilities.drop.as_ref());
    let identity = identity(spec, container);
    Sandbox {
        binary_at,
        command,
        folder: container
            .working_dir
            .clone()
            .filter(|dir| !dir.is_empty())
            .unwrap_or_else(|| "/".to_owned()),
        mounts: mounts(container, ground.volumes),
        files: etc_files(pod, spec, &identity, ground.pod_address),
        read_only_root: own.and_then(|own| own.read_only_root_filesystem) == Some(true),
        keeps_capabilities: !dropped.is_some_and(|dropped| dropped.iter().any(|name| name == "ALL")),
        no_new_privileges: own.and_then(|own| own.allow_privilege_escalation) == Some(false),
        identity,
        root: ground.root,
        log: ground.log,
        binary: ground.binary,
        users: ground.users,
    }
}

/// Where the image's program is put, and the command line. A command that names a program of the machine (`sh`,
/// `/bin/sleep`) runs that one; any other absolute path is taken for the image's own.
fn command(container: &Container, variables: &BTreeMap<String, String>) -> (String, Vec<String>) {
    let given = container.command.as_deref().unwrap_or_default();
    let arguments = container.args.iter().flatten();
    let mut words: Vec<String> = given
        .iter()
        .chain(arguments)
        .map(|word| expand(word, variables))
        .collect();
    if given.is_empty() {
        words.insert(0, ENTRYPOINT.to_owned());
    }
    let first = words.first().map_or(ENTRYPOINT, String::as_str);
    let of_machine = SYSTEM.iter().any(|folder| Path::new(first).starts_with(folder));
    let binary_at = if first.starts_with('/') && !of_machine {
        first.to_owned()
    } else {
        ENTRYPOINT.to_owned()
    };
    (binary_at, words)
}

fn mounts(container: &Container, volumes: &Path) -> Vec<Mount> {
    let wanted = container.volume_mounts.iter().flatten().map(|mount| Mount {
        from: match mount.sub_path.as_deref() {
            None | Some("") => volumes.join(&mount.name),
            Some(below) => volumes.join(&mount.name).join(below),
        },
        to: mount.mount_path.clone(),
        read_only: mount.read_only == Some(true),
    });
    let mut all: Vec<Mount> = wanted.collect();
    // Outer folders first, whatever the manifest's order: an inner mount would be covered otherwise.
    all.sort_by_key(|mount| mount.to.matches('/').count());
    all
}

/// `/etc` as an image without distribution has it.
fn etc_files(pod: &Pod, spec: &PodSpec, identity: &Identity, address: &str) -> BTreeMap<&'static str, String> {
    let name = spec.hostname.clone().or(pod.metadata.name.clone()).unwrap_or_default();
    let (user, group) = (identity.user, identity.group);
    let mut hosts = format!("127.0.0.1 localhost\n{address} {name}\n");
    for alias in spec.host_aliases.iter().flatten() {
        hosts += &format!(
            "{} {}\n",
            alias.ip,
            alias.hostnames.as_deref().unwrap_or_default().join(" ")
        );
    }
    BTreeMap::from([
        (
            "passwd",
            format!("root:x:0:0:root:/root:/bin/sh\nuser:x:{user}:{group}:user:/:/bin/sh\n"),
        ),
        ("group", format!("root:x:0:\nuser:x:{group}:\n")),
        ("hosts", hosts),
        ("hostname", name + "\n"),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files\n".to_owned(),
        ),
        ("resolv.conf", String::new()),
    ])
}

impl Sandbox {
    /// The script. Its text holds paths, numbers and the command line, never a variable's value.
    pub(crate) fn script(&self) -> String {
        let root = self.root.to_string_lossy();
        // The container's PATH is whatever its manifest says; the tools of this script are the machine's.
        let mut lines = vec![format!("exec >>{} 2>&1", quote(&self.log.to_string_lossy()))];
        lines.push("set -e; of_container=$PATH; PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        lines.push(format!(
            "mount -t tmpfs -o mode=755,size={ROOT_SIZE} pod {}",
            quote(&root)
        ));
        lines.push(format!("cd {}", quote(&root)));
        lines.push("mkdir proc dev etc tmp root run var".to_owned());
        lines.push("chmod 1777 tmp".to_owned());
        // Where the machine hides parts of its own /proc, an ordinary user may not mount a fresh one.
        lines.push("mount -t proc proc proc 2>/dev/null || mount --rbind /proc proc".to_owned());
        for folder in SYSTEM {
            let name = folder.trim_start_matches('/');
            lines.push(format!(
                "if [ -L {folder} ]; then cp -P {folder} .; elif [ -d {folder} ]; then mkdir {name}; {}; fi",
                bind(folder, name, true)
            ));
        }
        for file in SYSTEM_FILES {
            let name = file.trim_start_matches('/');
            lines.push(format!(
                "if [ -d {file} ]; then mkdir {name}; {0}; elif [ -e {file} ]; then : >{name}; {0}; fi",
                bind(file, name, true)
            ));
        }
        for device in DEVICES {
            lines.push(format!(": >dev/{device}; mount --bind /dev/{device} dev/{device}"));
        }
        lines.push("mkdir -m 1777 dev/shm; ln -s /proc/self/fd dev/fd; ln -s /proc/self/fd/1 dev/stdout; ln -s /proc/self/fd/2 dev/stderr".to_owned());
        for (name, text) in &self.files {
            lines.push(format!("printf %s {} >etc/{name}", quote(text)));
        }
        lines.extend(self.mounts.iter().map(mount_line));
        let at = inside(&self.binary_at);
        lines.push(format!(
            "mkdir -p \"$(dirname {0})\"; : >{0}; {1}",
            quote(&at),
            bind(&self.binary.to_string_lossy(), &at, true)
        ));
        lines.push(format!("mkdir -p {}", quote(&inside(&self.folder))));
        if self.read_only_root {
            lines.push(format!("mount -o remount,bind,ro {}", quote(&root)));
        }
        lines.push(self.exec_line());
        lines.join("\n")
    }

    /// Changes root and user, then becomes the container.
    fn exec_line(&self) -> String {
        let Identity { user, group, others } = &self.identity;
        let mut words = vec!["unset PWD OLDPWD; PATH=$of_container; exec /usr/bin/unshare".to_owned()];
        if self.users == Users::One {
            // One user can still be given the number that the manifest asks for: in a namespace inside the namespace.
            words.extend([
                "--user".to_owned(),
                format!("--map-user={user}"),
                format!("--map-group={group}"),
            ]);
        }
        words.extend([
            format!("--root={}", quote(&self.root.to_string_lossy())),
            format!("--wd={}", quote(&self.folder)),
        ]);
        words.push("/usr/bin/setpriv".to_owned());
        if self.users == Users::Many {
            words.extend([format!("--reuid={user}"), format!("--regid={group}")]);
            if others.is_empty() {
                words.push("--clear-groups".to_owned());
            } else {
                let groups: Vec<String> = others.iter().map(ToString::to_string).collect();
                words.push(format!("--groups={}", groups.join(",")));
            }
        }
        if !self.keeps_capabilities {
            words.extend(["--bounding-set=-all".to_owned(), "--inh-caps=-all".to_owned()]);
        }
        if self.no_new_privileges {
            words.push("--no-new-privs".to_owned());
        }
        // Last, since changing the user takes it back: whatever kills the kubelet kills the container.
        words.extend(["--pdeathsig".to_owned(), "KILL".to_owned(), "--".to_owned()]);
        words.extend(self.command.iter().map(|word| quote(word)));
        words.join(" ")
    }
}

/// A container's absolute path, seen from its root folder.
fn inside(path: &str) -> String {
    format!("./{}", path.trim_start_matches('/'))
}

fn mount_line(mount: &Mount) -> String {
    let (from, to) = (mount.from.to_string_lossy(), inside(&mount.to));
    let made = format!(
        "if [ -d {0} ]; then mkdir -p {1}; else mkdir -p \"$(dirname {1})\"; : >{1}; fi",
        quote(&from),
        quote(&to)
    );
    format!("{made}; {}", bind(&from, &to, mount.read_only))
}

fn bind(from: &str, to: &str, read_only: bool) -> String {
    let bound = format!("mount --bind {} {}", quote(from), quote(to));
    if read_only {
        format!("{bound}; mount -o remount,bind,ro {}", quote(to))
    } else {
        bound
    }
}

/// One word of a shell, whatever is in it.
pub(crate) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::{container, pod};
    use super::*;

    fn planned(of_pod: Value, own: Value, users: Users) -> Sandbox {
        let pod = pod(of_pod);
        let variables = BTreeMap::from([("PORT".to_owned(), "80".to_owned())]);
        let ground = Ground {
            root: "/s/root".into(),
            volumes: Path::new("/s/volumes"),
            binary: "/b/manager".into(),
            pod_address: "10.0.0.7",
            users,
            log: "/s/log".into(),
        };
        plan(&pod, pod.spec.as_ref().unwrap(), &container(own), &variables, ground)
    }

    #[test]
    fn the_command_line_is_the_manifests() {
        let table = [
            (json!({"name": "a"}), "/entrypoint", vec!["/entrypoint"]),
            (
                json!({"name": "a", "args": ["--port=$(PORT)"]}),
                "/entrypoint",
                vec!["/entrypoint", "--port=80"],
            ),
            (
                json!({"name": "a", "command": ["/manager"], "args": ["-v"]}),
                "/manager",
                vec!["/manager", "-v"],
            ),
            (
                json!({"name": "a", "command": ["/bin/sh", "-c", "x"]}),
                "/entrypoint",
                vec!["/bin/sh", "-c", "x"],
            ),
            (
                json!({"name": "a", "command": ["sleep", "1"]}),
                "/entrypoint",
                vec!["sleep", "1"],
            ),
        ];
        for (own, at, command) in table {
            let sandbox = planned(json!({"containers": []}), own.clone(), Users::Many);
            assert_eq!(
                (sandbox.binary_at.as_str(), sandbox.command),
                (at, command.into_iter().map(str::to_owned).collect()),
                "{own}"
            );
        }
    }

    #[test]
    fn outer_mounts_come_first_and_sub_paths_are_followed() {
        let own = json!({"name": "a", "volumeMounts": [
            {"name": "in", "mountPath": "/data/in", "subPath": "x/y", "readOnly": true}, {"name": "out", "mountPath": "/data"}]});
        let sandbox = planned(json!({"containers": []}), own, Users::Many);
        let expected = [
            Mount {
                from: "/s/volumes/out".into(),
                to: "/data".into(),
                read_only: false,
            },
            Mount {
                from: "/s/volumes/in/x/y".into(),
                to: "/data/in".into(),
                read_only: true,
            },
        ];
        assert_eq!(sandbox.mounts, expected);
    }

    #[test]
    fn the_user_is_changed_as_far_as_the_kubelet_may() {
        let own = json!({"name": "a", "securityContext": {"runAsUser": 7, "runAsGroup": 8, "capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": false}});
        let many = planned(
            json!({"containers": [], "securityContext": {"fsGroup": 9}}),
            own.clone(),
            Users::Many,
        )
        .exec_line();
        assert!(
            many.contains("--reuid=7 --regid=8 --groups=9 --bounding-set=-all --inh-caps=-all --no-new-privs"),
            "{many}"
        );
        let one = planned(json!({"containers": []}), own, Users::One).exec_line();
        assert!(
            one.contains("unshare --user --map-user=7 --map-group=8 --root=") && !one.contains("--reuid"),
            "{one}"
        );
        let plain = planned(json!({"containers": []}), json!({"name": "a"}), Users::Many).exec_line();
        assert!(
            plain.contains("--clear-groups") && !plain.contains("--bounding-set"),
            "{plain}"
        );
    }

    #[test]
    fn a_read_only_root_is_sealed_after_the_last_mount() {
        let own = json!({"name": "a", "securityContext": {"readOnlyRootFilesystem": true}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
        let script = planned(json!({"containers": []}), own, Users::Many).script();
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines[lines.len() - 2], "mount -o remount,bind,ro /s/root");
        assert!(
            !planned(json!({"containers": []}), json!({"name": "a"}), Users::Many)
                .script()
                .contains("ro /s/root")
        );
    }

    #[test]
    fn no_word_of_a_manifest_becomes_shell() {
        for (text, quoted) in [
            ("plain", "plain"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(x);'", r"'$(x);'\'''"),
            ("\n", "'\n'"),
        ] {
            assert_eq!(quote(text), quoted, "{text}");
        }
    }

    #[test]
    fn hosts_know_the_pod_and_its_aliases() {
        let spec = json!({"containers": [], "hostAliases": [{"ip": "10.9.9.9", "hostnames": ["ironic", "bmc"]}]});
        let sandbox = planned(spec, json!({"name": "a"}), Users::Many);
        assert_eq!(
            sandbox.files["hosts"],
            "127.0.0.1 localhost\n10.0.0.7 web-1\n10.9.9.9 ironic bmc\n"
        );
    }
}
