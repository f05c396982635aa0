//! The workload cluster: a real API server of its own authority at its own endpoint, and what kubeadm leaves in it.
//!
//! It is started from the files that the first machine found on its config-drive, and from nothing else; its data are in
//! the stack's etcd, apart from the stack's own. There is no controller in it: whoever expects Pods, waits in vain.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::drive::Boot;
use super::guests::Login;
use crate::claims::world::World;
use crate::families::KUBERNETES;
use crate::places::BRIDGE;
use crate::wait::until;

const START: Duration = Duration::from_secs(120);
/// Whoever shows a token of kubeadm's.
const BOOTSTRAPPERS: &str = "system:bootstrappers:kubeadm:default-node-token";

/// A running control plane machine, as far as it is software.
pub(crate) struct Workload {
    /// Name of its Node.
    pub(crate) name: String,
    /// Address of the endpoint, which the machine announces while it is on.
    address: String,
    endpoint: String,
    folder: PathBuf,
    server: Child,
}

impl Workload {
    /// Starts what `kubeadm init` would, and leaves in it what `kubeadm init` leaves.
    pub(crate) fn start(world: &World, boot: &Boot, cluster: &Value) -> anyhow::Result<Self> {
        let endpoint = cluster["controlPlaneEndpoint"]
            .as_str()
            .context("no controlPlaneEndpoint")?;
        let (address, port) = endpoint.rsplit_once(':').context("an endpoint without a port")?;
        let folder = world.places.state_file("machines").join(&boot.name);
        for (file, text) in &boot.pki {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            fs::write(&path, text)?;
        }
        let (served, admin) = (format!("IP:{address}"), "/O=system:masters/CN=kubernetes-admin");
        sign(world, &folder, "apiserver", "/CN=kube-apiserver", Some(&served))?;
        sign(world, &folder, "admin", admin, None)?;
        world.run(
            "ip",
            &["address", "replace", &format!("{address}/32"), "dev", BRIDGE],
            None,
        )?;
        let log = File::create(world.places.log(&format!("machine-{}", boot.name)))?;
        // Another cluster of the same name has another authority, and finds nothing of this one.
        let authority = world.run("sha256sum", &[&folder.join("ca.crt").display().to_string()], None)?;
        let place = authority.get(..16).context("sha256sum says nothing")?;
        let etcd = format!("http://{}:2379", world.places.node_address());
        let server = Command::new(world.places.family(&KUBERNETES).join("kube-apiserver"))
            .args(flags(cluster, &folder, (address, port), (&etcd, place))?)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the workload cluster's API server")?;
        let workload = Self {
            name: boot.name.clone(),
            address: address.to_owned(),
            endpoint: endpoint.to_owned(),
            folder,
            server,
        };
        until(START, "the workload cluster's API server", || {
            workload.kubectl(world, &["get", "--raw", "/readyz"], None).map(Some)
        })?;
        until(START, "the namespaces of the workload cluster", || {
            let words = ["get", "namespace", "kube-system", "kube-public"];
            workload.kubectl(world, &words, None).map(Some)
        })?;
        let left = json!({"apiVersion": "v1", "kind": "List", "items": workload.left(cluster)?});
        workload.apply(world, &left)?;
        Ok(workload)
    }

    /// The machine is off: nobody answers at the endpoint, nor has its address.
    pub(crate) fn stop(mut self, world: &World) -> anyhow::Result<()> {
        self.server.kill()?;
        self.server.wait()?;
        let address = format!("{}/32", self.address);
        world
            .run("ip", &["address", "del", &address, "dev", BRIDGE], None)
            .map(drop)
    }

    /// What its administrator shows.
    pub(super) fn login(&self) -> anyhow::Result<Login> {
        let text = |file: &str| fs::read_to_string(self.folder.join(file));
        Ok(Login {
            endpoint: self.endpoint.clone(),
            authority: text("ca.crt")?,
            certificate: text("admin.crt")?,
            key: text("admin.key")?,
        })
    }

    /// As its administrator.
    pub(crate) fn kubectl(&self, world: &World, words: &[&str], input: Option<&str>) -> anyhow::Result<String> {
        let path = |file: &str| self.folder.join(file).display().to_string();
        let (server, authority) = (format!("https://{}", self.endpoint), path("ca.crt"));
        let (certificate, key) = (path("admin.crt"), path("admin.key"));
        // The environment leads into the management cluster.
        let mut all = vec!["--kubeconfig", "/dev/null", "--server", &server];
        all.extend(["--certificate-authority", &authority]);
        all.extend(["--client-certificate", &certificate, "--client-key", &key]);
        all.extend(words);
        world.run("kubectl", &all, input)
    }

    pub(crate) fn apply(&self, world: &World, object: &Value) -> anyhow::Result<()> {
        let words = ["apply", "--filename", "-"];
        self.kubectl(world, &words, Some(&object.to_string())).map(drop)
    }

    /// What `kubeadm join` reads before it does anything: the way in, by nobody, and the configuration, by the token.
    pub(crate) fn admits(&self, world: &World, endpoint: &str, token: &str) -> anyhow::Result<()> {
        ensure!(endpoint == self.endpoint, "told {endpoint}, it is {}", self.endpoint);
        self.read(world, "kube-public", "cluster-info", None)?;
        for map in ["kubeadm-config", "kubelet-config"] {
            let read = self.read(world, "kube-system", map, Some(token));
            read.context("with the token of its config-drive")?;
        }
        Ok(())
    }

    /// Reads a ConfigMap. The token goes through standard input: no list of processes shows it, and no error.
    fn read(&self, world: &World, namespace: &str, map: &str, token: Option<&str>) -> anyhow::Result<()> {
        let url = format!(
            "https://{}/api/v1/namespaces/{namespace}/configmaps/{map}",
            self.endpoint
        );
        let authority = self.folder.join("ca.crt").display().to_string();
        let words = [
            "--silent",
            "--show-error",
            "--fail",
            "--cacert",
            &authority,
            "--config",
            "-",
            &url,
        ];
        let login = token.map(|token| format!("header = \"Authorization: Bearer {token}\"\n"));
        world.run("curl", &words, Some(&login.unwrap_or_default())).map(drop)
    }

    /// What `kubeadm init` leaves for those who join and those who look.
    fn left(&self, cluster: &Value) -> anyhow::Result<Vec<Value>> {
        let authority = self.folder.join("ca.crt");
        let way_in = json!({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": {
            "server": format!("https://{}", self.endpoint),
            "certificate-authority-data": base64_of(&authority)?,
        }}]});
        let kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        let map = |namespace: &str, name: &str, key: &str, text: String| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name},
                "data": {key: text}})
        };
        let mut left = vec![
            map(
                "kube-system",
                "kubeadm-config",
                "ClusterConfiguration",
                cluster.to_string(),
            ),
            map("kube-system", "kubelet-config", "kubelet", kubelet.to_owned()),
            map("kube-public", "cluster-info", "kubeconfig", way_in.to_string()),
        ];
        let anybody = json!({"kind": "User", "name": "system:anonymous"});
        let joining = json!({"kind": "Group", "name": BOOTSTRAPPERS});
        left.extend(may_read("kube-public", "cluster-info", &anybody));
        left.extend(may_read("kube-system", "kubeadm-config", &joining));
        left.extend(may_read("kube-system", "kubelet-config", &joining));
        Ok(left)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // After a failure; the stack would end it, too.
        self.server.kill().unwrap_or_default();
    }
}

/// kubectl and files of PEM are all there is to make a kubeconfig of.
fn base64_of(path: &Path) -> anyhow::Result<String> {
    let answer = Command::new("base64").arg("--wrap=0").arg(path).output()?;
    ensure!(answer.status.success(), "base64 {}", path.display());
    Ok(String::from_utf8(answer.stdout)?)
}

fn may_read(namespace: &str, map: &str, subject: &Value) -> [Value; 2] {
    let metadata = json!({"namespace": namespace, "name": format!("kubeadm:{map}")});
    let group = "rbac.authorization.k8s.io";
    let mut subject = subject.clone();
    subject["apiGroup"] = group.into();
    [
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [map], "verbs": ["get"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": metadata["name"]}, "subjects": [subject]}),
    ]
}

/// A certificate by the authority that lies in the folder, and its key.
fn sign(world: &World, folder: &Path, name: &str, subject: &str, serves_as: Option<&str>) -> anyhow::Result<()> {
    let path = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
    let (key, request, certificate) = (path("key"), path("csr"), path("crt"));
    let mut words = vec!["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    words.extend(["-subj", subject, "-keyout", &key, "-out", &request]);
    // Without an extension it would be a certificate of a version that not everybody reads.
    let extension = serves_as.map_or_else(
        || "extendedKeyUsage=clientAuth".to_owned(),
        |name| format!("subjectAltName={name}"),
    );
    words.extend(["-addext", &extension]);
    world.run("openssl", &words, None)?;
    let authority = ["ca.crt", "ca.key"].map(|file| folder.join(file).display().to_string());
    let [ca, ca_key] = &authority;
    let mut words = vec![
        "x509",
        "-req",
        "-days",
        "2",
        "-copy_extensions",
        "copy",
        "-CAcreateserial",
    ];
    words.extend(["-in", &request, "-CA", ca, "-CAkey", ca_key, "-out", &certificate]);
    world.run("openssl", &words, None).map(drop)
}

fn flags(
    cluster: &Value,
    folder: &Path,
    (address, port): (&str, &str),
    (etcd, place): (&str, &str),
) -> anyhow::Result<Vec<String>> {
    let external = cluster["etcd"]["external"]["endpoints"].as_array();
    let external: Vec<&str> = external.into_iter().flatten().filter_map(Value::as_str).collect();
    // Where the machine is to run etcd itself, the stack's plays it.
    let servers = if external.is_empty() { vec![etcd] } else { external };
    let name = cluster["clusterName"].as_str().context("no clusterName")?;
    // As kubeadm has it where nobody says another.
    let services = cluster["networking"]["serviceSubnet"]
        .as_str()
        .unwrap_or("10.96.0.0/12");
    let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
    Ok(vec![
        format!("--etcd-servers={}", servers.join(",")),
        format!("--etcd-prefix=/{name}-{place}"),
        format!("--bind-address={address}"),
        format!("--advertise-address={address}"),
        format!("--secure-port={port}"),
        format!("--service-cluster-ip-range={services}"),
        "--endpoint-reconciler-type=none".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--enable-bootstrap-token-auth".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        file("tls-cert-file", "apiserver.crt"),
        file("tls-private-key-file", "apiserver.key"),
        file("client-ca-file", "ca.crt"),
        file("service-account-key-file", "sa.pub"),
        file("service-account-signing-key-file", "sa.key"),
    ])
}
