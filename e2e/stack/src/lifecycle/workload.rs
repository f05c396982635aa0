//! The workload cluster: a real API server with its own certificate authority at its own endpoint, and the objects that
//! kubeadm creates.
//!
//! It is started only from files of the first machine's config-drive; its data are in the stack's etcd under a separate
//! prefix. It runs no controllers and no Pods.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::drive::Boot;
use super::other_providers::Login;
use crate::claims::stack::Stack;
use crate::families::KUBERNETES;
use crate::places::BRIDGE;
use crate::wait::until;

const START: Duration = Duration::from_secs(120);
/// The group of kubeadm's bootstrap tokens.
const BOOTSTRAPPERS: &str = "system:bootstrappers:kubeadm:default-node-token";

pub(crate) struct Workload {
    pub(crate) name: String,
    /// The address of the endpoint, on the bridge while the server runs.
    address: String,
    endpoint: String,
    folder: PathBuf,
    server: Child,
}

impl Workload {
    /// Starts the API server and creates the objects of `kubeadm init`.
    pub(crate) fn start(stack: &Stack, boot: &Boot, cluster: &Value) -> anyhow::Result<Self> {
        let endpoint = cluster["controlPlaneEndpoint"]
            .as_str()
            .context("no controlPlaneEndpoint")?;
        let (address, port) = endpoint.rsplit_once(':').context("an endpoint without a port")?;
        let folder = stack.places.state_file("machines").join(&boot.name);
        for (file, text) in &boot.pki {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            fs::write(&path, text)?;
        }
        let (served, admin) = (format!("IP:{address}"), "/O=system:masters/CN=kubernetes-admin");
        sign(stack, &folder, "apiserver", "/CN=kube-apiserver", Some(&served))?;
        sign(stack, &folder, "admin", admin, None)?;
        stack.run(
            "ip",
            &["address", "replace", &format!("{address}/32"), "dev", BRIDGE],
            None,
        )?;
        let log = File::create(stack.places.log(&format!("machine-{}", boot.name)))?;
        // Another cluster of the same name has another certificate authority, and hence another prefix.
        let authority = stack.run("sha256sum", &[&folder.join("ca.crt").display().to_string()], None)?;
        let place = authority.get(..16).context("sha256sum prints nothing")?;
        let etcd = format!("http://{}:2379", stack.places.node_address());
        let server = Command::new(stack.places.family(&KUBERNETES).join("kube-apiserver"))
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
            workload.kubectl(stack, &["get", "--raw", "/readyz"], None).map(Some)
        })?;
        until(START, "the namespaces of the workload cluster", || {
            let args = ["get", "namespace", "kube-system", "kube-public"];
            workload.kubectl(stack, &args, None).map(Some)
        })?;
        let left = json!({"apiVersion": "v1", "kind": "List", "items": workload.left(cluster)?});
        workload.apply(stack, &left)?;
        Ok(workload)
    }

    /// Stops the API server and removes its address.
    pub(crate) fn stop(mut self, stack: &Stack) -> anyhow::Result<()> {
        self.server.kill()?;
        self.server.wait()?;
        let address = format!("{}/32", self.address);
        stack
            .run("ip", &["address", "del", &address, "dev", BRIDGE], None)
            .map(drop)
    }

    pub(super) fn login(&self) -> anyhow::Result<Login> {
        let text = |file: &str| fs::read_to_string(self.folder.join(file));
        Ok(Login {
            endpoint: self.endpoint.clone(),
            authority: text("ca.crt")?,
            certificate: text("admin.crt")?,
            key: text("admin.key")?,
        })
    }

    pub(crate) fn kubectl(&self, stack: &Stack, args: &[&str], input: Option<&str>) -> anyhow::Result<String> {
        let path = |file: &str| self.folder.join(file).display().to_string();
        let (server, authority) = (format!("https://{}", self.endpoint), path("ca.crt"));
        let (certificate, key) = (path("admin.crt"), path("admin.key"));
        // The environment points to the management cluster.
        let mut all = vec!["--kubeconfig", "/dev/null", "--server", &server];
        all.extend(["--certificate-authority", &authority]);
        all.extend(["--client-certificate", &certificate, "--client-key", &key]);
        all.extend(args);
        stack.run("kubectl", &all, input)
    }

    pub(crate) fn apply(&self, stack: &Stack, object: &Value) -> anyhow::Result<()> {
        let args = ["apply", "--filename", "-"];
        self.kubectl(stack, &args, Some(&object.to_string())).map(drop)
    }

    /// Reads like `kubeadm join`: the cluster info anonymously, the configuration with the token.
    pub(crate) fn admits(&self, stack: &Stack, endpoint: &str, token: &str) -> anyhow::Result<()> {
        ensure!(
            endpoint == self.endpoint,
            "expected {}, joins {endpoint}",
            self.endpoint
        );
        self.read(stack, "kube-public", "cluster-info", None)?;
        for map in ["kubeadm-config", "kubelet-config"] {
            let read = self.read(stack, "kube-system", map, Some(token));
            read.context("with the token of its config-drive")?;
        }
        Ok(())
    }

    /// Reads a ConfigMap. The token is passed through standard input, so that neither process list nor errors show it.
    fn read(&self, stack: &Stack, namespace: &str, map: &str, token: Option<&str>) -> anyhow::Result<()> {
        let url = format!(
            "https://{}/api/v1/namespaces/{namespace}/configmaps/{map}",
            self.endpoint
        );
        let authority = self.folder.join("ca.crt").display().to_string();
        let args = [
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
        stack.run("curl", &args, Some(&login.unwrap_or_default())).map(drop)
    }

    /// The objects that `kubeadm init` creates.
    fn left(&self, cluster: &Value) -> anyhow::Result<Vec<Value>> {
        let authority = self.folder.join("ca.crt");
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": {
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
            map("kube-public", "cluster-info", "kubeconfig", kubeconfig.to_string()),
        ];
        let anonymous = json!({"kind": "User", "name": "system:anonymous"});
        let joining = json!({"kind": "Group", "name": BOOTSTRAPPERS});
        left.extend(reader_role("kube-public", "cluster-info", &anonymous));
        left.extend(reader_role("kube-system", "kubeadm-config", &joining));
        left.extend(reader_role("kube-system", "kubelet-config", &joining));
        Ok(left)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // After a failure; otherwise the stack ends it.
        self.server.kill().unwrap_or_default();
    }
}

/// Encodes a PEM file for a kubeconfig.
fn base64_of(path: &Path) -> anyhow::Result<String> {
    let answer = Command::new("base64").arg("--wrap=0").arg(path).output()?;
    ensure!(answer.status.success(), "base64 {}", path.display());
    Ok(String::from_utf8(answer.stdout)?)
}

fn reader_role(namespace: &str, map: &str, subject: &Value) -> [Value; 2] {
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

/// Signs a certificate with the certificate authority in the directory.
fn sign(stack: &Stack, folder: &Path, name: &str, subject: &str, serves_as: Option<&str>) -> anyhow::Result<()> {
    let path = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
    let (key, request, certificate) = (path("key"), path("csr"), path("crt"));
    let mut args = vec!["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    args.extend(["-subj", subject, "-keyout", &key, "-out", &request]);
    // An extension makes it a version 3 certificate, which all clients read.
    let extension = serves_as.map_or_else(
        || "extendedKeyUsage=clientAuth".to_owned(),
        |name| format!("subjectAltName={name}"),
    );
    args.extend(["-addext", &extension]);
    stack.run("openssl", &args, None)?;
    let authority = ["ca.crt", "ca.key"].map(|file| folder.join(file).display().to_string());
    let [ca, ca_key] = &authority;
    let mut args = vec![
        "x509",
        "-req",
        "-days",
        "2",
        "-copy_extensions",
        "copy",
        "-CAcreateserial",
    ];
    args.extend(["-in", &request, "-CA", ca, "-CAkey", ca_key, "-out", &certificate]);
    stack.run("openssl", &args, None).map(drop)
}

fn flags(
    cluster: &Value,
    folder: &Path,
    (address, port): (&str, &str),
    (etcd, place): (&str, &str),
) -> anyhow::Result<Vec<String>> {
    let external = cluster["etcd"]["external"]["endpoints"].as_array();
    let external: Vec<&str> = external.into_iter().flatten().filter_map(Value::as_str).collect();
    // For managed etcd, the stack's etcd is used.
    let servers = if external.is_empty() { vec![etcd] } else { external };
    let name = cluster["clusterName"].as_str().context("no clusterName")?;
    // kubeadm's default.
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
