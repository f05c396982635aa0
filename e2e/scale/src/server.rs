//! The API server as the driver uses it: plain documents, each kind of work as a user of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use http::{Method, Request};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::time::sleep;

/// The namespace of the manager, as the release has it.
pub(crate) const SYSTEM: &str = "metal3-system";
/// The account of the manager.
pub(crate) const MANAGER: &str = "metal3-manager";
/// The namespace of hosts.
pub(crate) const NAMESPACE: &str = "scale";
/// What the release installs: the accounts and roles are taken from it.
const COMPONENTS: &str = include_str!("../../../manifests/default/components.yaml");
const ACCESS: [&str; 6] = [
    "Namespace",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
];
/// A day: longer than any run.
const TOKEN_SECONDS: u32 = 86_400;
/// A request that the server rejects for its load is repeated.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) client: kube::Client,
}

impl Server {
    pub(crate) async fn connect(kubeconfig: Kubeconfig) -> anyhow::Result<Self> {
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        Ok(Self { client })
    }

    async fn send(&self, method: &Method, path: &str, media: &str, body: &[u8]) -> anyhow::Result<Value> {
        let mut attempt = 1;
        loop {
            let request = Request::builder().method(method).uri(path);
            let request = request.header("Content-Type", media).body(body.to_vec())?;
            match self.client.request(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt < ATTEMPTS && is_passing(&error) => {
                    attempt += 1;
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error).with_context(|| format!("{method} {path}")),
            }
        }
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(&Method::GET, path, "application/json", &[]).await
    }

    pub(crate) async fn create(&self, collection: &str, object: &Value) -> anyhow::Result<Value> {
        let body = object.to_string();
        self.send(&Method::POST, collection, "application/json", body.as_bytes())
            .await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> anyhow::Result<Value> {
        let media = "application/merge-patch+json";
        self.send(&Method::PATCH, path, media, patch.to_string().as_bytes())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.send(&Method::DELETE, path, "application/json", &[])
            .await
            .map(drop)
    }

    /// Installs the kinds of hosts, the account and roles of the release, and the namespace of hosts.
    pub(crate) async fn install(&self) -> anyhow::Result<()> {
        for definition in metal3_api::metal3::definitions() {
            self.create(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &definition.manifest(),
            )
            .await?;
        }
        let documents: Vec<Value> = serde_saphyr::from_multiple(COMPONENTS).context("components.yaml")?;
        let is_access = |document: &&Value| {
            let kind = document.get("kind").and_then(Value::as_str);
            kind.is_some_and(|kind| ACCESS.contains(&kind))
        };
        // Namespaces first: the file is in the order of an installation.
        for document in documents.iter().filter(is_access) {
            self.create(&collection(document)?, document).await?;
        }
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        self.create("/api/v1/namespaces", &namespace).await?;
        let served = hosts();
        for _ in 0..120 {
            if self.get(&served).await.is_ok() {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        anyhow::bail!("the API server does not serve BareMetalHosts")
    }

    /// A user with all permissions, for the driver.
    pub(crate) async fn account(&self, name: &str) -> anyhow::Result<()> {
        let metadata = json!({ "name": name, "namespace": NAMESPACE });
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
        self.create(&format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), &account)
            .await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE }],
        });
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        self.create(bindings, &binding).await.map(drop)
    }

    /// The kubeconfig of an account, with its token in a file of `home`.
    pub(crate) async fn kubeconfig(
        &self,
        admin: &Kubeconfig,
        (namespace, account): (&str, &str),
        home: &Path,
    ) -> anyhow::Result<Kubeconfig> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let wanted = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "audiences": [], "expirationSeconds": TOKEN_SECONDS } });
        let answer = self.create(&path, &wanted).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        let file = home.join(format!("{account}.token"));
        std::fs::write(&file, token.context("a TokenRequest without token")?)?;
        let mut kubeconfig = admin.clone();
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(AuthInfo {
                token_file: Some(file.display().to_string()),
                ..AuthInfo::default()
            });
        }
        Ok(kubeconfig)
    }
}

/// Whether the same request may succeed later.
fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}

/// The path of hosts.
pub(crate) fn hosts() -> String {
    format!("/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/baremetalhosts")
}

/// The path of a collection of the namespace of hosts.
pub(crate) fn in_namespace(resource: &str) -> String {
    match resource {
        "secrets" | "events" => format!("/api/v1/namespaces/{NAMESPACE}/{resource}"),
        _ => format!("/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/{resource}"),
    }
}

/// The path of the collection of an object of access.
fn collection(document: &Value) -> anyhow::Result<String> {
    let text = |at: &str| document.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let root = match text("/apiVersion") {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    let plural = format!("{}s", text("/kind").to_lowercase());
    Ok(match text("/metadata/namespace") {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}"),
    })
}
