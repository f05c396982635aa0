//! Plans a container: from its manifest to the shell script that creates its root directory and executes it.
//!
//! The script is the first process of new mount and process namespaces, inside the Pod's network. It uses only `mount`,
//! `setpriv` and `unshare` of the machine, so the plan shows all that a container can access.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use super::environment::expand;
use super::pull::Runs;
use super::user::{Identity, Users, identity};

/// Directories of the machine that each container has, read-only: loader and libraries of dynamic programs.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// Files of the machine's `/etc` that programs may need and that are not specific to the machine.
const SYSTEM_FILES: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/alternatives",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// The path of the image's program without `command`.
const ENTRYPOINT: &str = "/entrypoint";
/// The root directory is in memory, so its size is limited.
const ROOT_SIZE: &str = "64m";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) from: PathBuf,
    pub(crate) to: String,
    pub(crate) read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
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

/// The content of a container's image.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    /// A program without a path of its own: it is where the command looks for it.
    pub(crate) binary: Option<PathBuf>,
    pub(crate) files: Vec<Mount>,
    /// What the image says about its process.
    pub(crate) runs: Runs,
}

/// The kubelet's inputs in addition to the manifest.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) root: PathBuf,
    /// Directory of the Pod's volumes, by volume name.
    pub(crate) volumes: &'a Path,
    pub(crate) image: Image,
    pub(crate) pod_address: &'a str,
    pub(crate) users: Users,
    pub(crate) log: PathBuf,
}

/// Plans a container of a Pod that is not refused.
pub(crate) fn plan(
    pod: &Pod,
    spec: &PodSpec,
    container: &Container,
    variables: &BTreeMap<String, String>,
    inputs: Inputs<'_>,
) -> Sandbox {
    let Image { binary, files, runs } = inputs.image;
    let (binary_at, command) = command(container, variables, &runs);
    let own = container.security_context.as_ref();
    let dropped = own
        .and_then(|own| own.capabilities.as_ref())
        .and_then(|capabilities| capabilities.drop.as_ref());
    let identity = identity(spec, container, runs.user);
    let program = binary.map(|from| Mount {
        from,
        to: binary_at,
        read_only: true,
    });
    let program: Vec<Mount> = program.into_iter().collect();
    Sandbox {
        command,
        folder: container
            .working_dir
            .clone()
            .filter(|dir| !dir.is_empty())
            .or(runs.folder)
            .unwrap_or_else(|| "/".to_owned()),
        mounts: [files, mounts(container, inputs.volumes), program].concat(),
        files: etc_files(pod, spec, &identity, inputs.pod_address),
        read_only_root: own.and_then(|own| own.read_only_root_filesystem) == Some(true),
        keeps_capabilities: !dropped.is_some_and(|dropped| dropped.iter().any(|name| name == "ALL")),
        no_new_privileges: own.and_then(|own| own.allow_privilege_escalation) == Some(false),
        identity,
        root: inputs.root,
        log: inputs.log,
        users: inputs.users,
    }
}

/// The path of the image's program, and the command line. A command that names a program of the machine (`sh`,
/// `/bin/sleep`) runs that one; any other absolute path is the image's program. The Pod's command replaces the entry point
/// and the arguments of the image, the Pod's arguments only these.
fn command(container: &Container, variables: &BTreeMap<String, String>, runs: &Runs) -> (String, Vec<String>) {
    let given = container.command.as_deref().unwrap_or_default();
    let of_image = given.is_empty();
    let arguments = match container.args.as_deref() {
        Some(arguments) => arguments,
        None if of_image => &runs.arguments,
        None => &[],
    };
    let given = if of_image { &runs.entrypoint } else { given };
    let mut args: Vec<String> = given
        .iter()
        .chain(arguments)
        .map(|arg| expand(arg, variables))
        .collect();
    if given.is_empty() {
        args.insert(0, ENTRYPOINT.to_owned());
    }
    let first = args.first().map_or(ENTRYPOINT, String::as_str);
    let of_machine = SYSTEM.iter().any(|folder| Path::new(first).starts_with(folder));
    let binary_at = if first.starts_with('/') && !of_machine {
        first.to_owned()
    } else {
        ENTRYPOINT.to_owned()
    };
    (binary_at, args)
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
    // Outer directories first: otherwise they would hide inner mounts.
    all.sort_by_key(|mount| mount.to.matches('/').count());
    all
}

/// `/etc` of an image without distribution.
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
    /// The script. It contains paths, numbers and the command line, no values of variables.
    pub(crate) fn script(&self) -> String {
        let root = self.root.to_string_lossy();
        // PATH is the container's; the script itself uses the machine's tools.
        let mut lines = vec![format!("exec >>{} 2>&1", quote(&self.log.to_string_lossy()))];
        lines.push("set -e; of_container=$PATH; PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        lines.push(format!(
            "mount -t tmpfs -o mode=755,size={ROOT_SIZE} pod {}",
            quote(&root)
        ));
        lines.push(format!("cd {}", quote(&root)));
        lines.push("mkdir proc dev etc tmp root run var".to_owned());
        lines.push("chmod 1777 tmp".to_owned());
        // Where the machine masks parts of /proc, an ordinary user may not mount a new one.
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
        lines.push(format!("mkdir -p {}", quote(&inside(&self.folder))));
        if self.read_only_root {
            lines.push(format!("mount -o remount,bind,ro {}", quote(&root)));
        }
        lines.push(self.exec_line());
        lines.join("\n")
    }

    /// Changes root and user, then executes the command.
    fn exec_line(&self) -> String {
        let Identity { user, group, others } = &self.identity;
        let mut args = vec!["unset PWD OLDPWD; PATH=$of_container; exec /usr/bin/unshare".to_owned()];
        if self.users == Users::One {
            // With one user, the number of the manifest is mapped in a nested user namespace.
            args.extend([
                "--user".to_owned(),
                format!("--map-user={user}"),
                format!("--map-group={group}"),
            ]);
        }
        args.extend([
            format!("--root={}", quote(&self.root.to_string_lossy())),
            format!("--wd={}", quote(&self.folder)),
        ]);
        args.push("/usr/bin/setpriv".to_owned());
        if self.users == Users::Many {
            args.extend([format!("--reuid={user}"), format!("--regid={group}")]);
            if others.is_empty() {
                args.push("--clear-groups".to_owned());
            } else {
                let groups: Vec<String> = others.iter().map(ToString::to_string).collect();
                args.push(format!("--groups={}", groups.join(",")));
            }
        }
        if !self.keeps_capabilities {
            args.extend(["--bounding-set=-all".to_owned(), "--inh-caps=-all".to_owned()]);
        }
        if self.no_new_privileges {
            args.push("--no-new-privs".to_owned());
        }
        // Last, because changing the user resets it: the container ends with the kubelet.
        args.extend(["--pdeathsig".to_owned(), "KILL".to_owned(), "--".to_owned()]);
        args.extend(self.command.iter().map(|arg| quote(arg)));
        args.join(" ")
    }
}

/// An absolute path of the container, relative to its root directory.
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

/// Quotes a shell word.
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
        let inputs = Inputs {
            root: "/s/root".into(),
            volumes: Path::new("/s/volumes"),
            image: Image {
                binary: Some("/b/manager".into()),
                ..Image::default()
            },
            pod_address: "10.0.0.7",
            users,
            log: "/s/log".into(),
        };
        plan(&pod, pod.spec.as_ref().unwrap(), &container(own), &variables, inputs)
    }

    #[test]
    fn command_line_follows_the_manifest() {
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
                (sandbox.mounts[0].to.as_str(), sandbox.command),
                (at, command.into_iter().map(str::to_owned).collect()),
                "{own}"
            );
        }
    }

    #[test]
    fn image_with_an_entry_point_runs_it_unless_the_pod_says_otherwise() {
        let runs = Runs {
            entrypoint: vec!["/capm3".to_owned(), "serve".to_owned()],
            arguments: vec!["-v".to_owned()],
            ..Runs::default()
        };
        for (own, line) in [
            (json!({"name": "a"}), "/capm3 serve -v"),
            (json!({"name": "a", "args": ["-q"]}), "/capm3 serve -q"),
            (json!({"name": "a", "args": []}), "/capm3 serve"),
            (json!({"name": "a", "command": ["/capm3"]}), "/capm3"),
            (json!({"name": "a", "command": ["/capm3"], "args": ["-q"]}), "/capm3 -q"),
        ] {
            let (_, command) = command(&container(own.clone()), &BTreeMap::new(), &runs);
            assert_eq!(command.join(" "), line, "{own}");
        }
    }

    #[test]
    fn outer_mounts_come_first_and_sub_paths_are_resolved() {
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
        assert_eq!(sandbox.mounts[..2], expected);
    }

    #[test]
    fn user_is_changed_within_the_kubelets_permissions() {
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
    fn root_becomes_read_only_after_the_last_mount() {
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
    fn manifest_values_are_quoted_for_the_shell() {
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
    fn hosts_file_has_the_pod_and_its_aliases() {
        let spec = json!({"containers": [], "hostAliases": [{"ip": "10.9.9.9", "hostnames": ["ironic", "bmc"]}]});
        let sandbox = planned(spec, json!({"name": "a"}), Users::Many);
        assert_eq!(
            sandbox.files["hosts"],
            "127.0.0.1 localhost\n10.0.0.7 web-1\n10.9.9.9 ironic bmc\n"
        );
    }
}
