//! The claims about the admission policies that ship with the form without cert-manager: which writes of its own account
//! the API server accepts. Requests are sent as that account, most of them as a dry run, which policies review as well.

use std::fs;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::access;
use super::load::list;
use super::manager::{LONG, NAMESPACE};
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::{Stack, TestNamespace};
use crate::wait::until;
use crate::yaml::documents;

const SECRET: &str = "ipam-webhook-certificates";
/// The account of the process of all products.
const MANAGER: &str = "system:serviceaccount:metal3-system:metal3-manager";
/// What of the release grants rights and limits them.
const RIGHTS: [&str; 8] = [
    "Namespace",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];
/// The definition whose conversion has a CA, and the one of the owner of a rendered endpoint.
const CONVERTED: &str = "metal3machines.infrastructure.cluster.x-k8s.io";
const OWNER: &str = "metal3clusters.infrastructure.cluster.x-k8s.io";
/// The definition of the hosts, which roles may delete and policies do not.
const HOSTS: &str = "baremetalhosts.metal3.io";

/// A user that sends writes as dry runs.
struct Account<'a> {
    stack: &'a Stack,
    name: &'a str,
    accepted: usize,
    denied: usize,
}

impl<'a> Account<'a> {
    const fn new(stack: &'a Stack, name: &'a str) -> Self {
        Self {
            stack,
            name,
            accepted: 0,
            denied: 0,
        }
    }

    fn send(&self, arguments: &[&str], input: Option<&Value>) -> anyhow::Result<String> {
        let own = ["--as", self.name, "--dry-run=server"];
        let input = input.map(Value::to_string);
        self.stack.run("kubectl", &[arguments, &own].concat(), input.as_deref())
    }

    fn accepts(&mut self, what: &str, arguments: &[&str], input: Option<&Value>) -> anyhow::Result<()> {
        self.send(arguments, input).with_context(|| what.to_owned())?;
        self.accepted += 1;
        Ok(())
    }

    /// Requires a denial by this policy, and not by a role.
    fn denies(&mut self, policy: &str, what: &str, arguments: &[&str], input: Option<&Value>) -> anyhow::Result<()> {
        let Err(refused) = self.send(arguments, input) else {
            bail!("{what} was accepted");
        };
        let (refused, wanted) = (format!("{refused:#}"), format!("ValidatingAdmissionPolicy '{policy}'"));
        ensure!(refused.contains(&wanted), "{what}: {refused}");
        self.denied += 1;
        Ok(())
    }

    fn proof(self) -> Proof {
        Ok(format!("{} writes accepted, {} denied", self.accepted, self.denied))
    }
}

fn secret(name: &str, kind: &str, owner: Option<&Value>) -> Value {
    let mut metadata = json!({ "name": name });
    if kind == "kubernetes.io/service-account-token" {
        metadata["annotations"] = json!({ "kubernetes.io/service-account.name": "default" });
    }
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([owner]);
    }
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": { "key": "eA==" }})
}

fn patched<'a>(kind: &'a str, object: &'a str, namespace: &'a str, patch: &'a str) -> Vec<&'a str> {
    vec![
        "patch",
        kind,
        object,
        "--namespace",
        namespace,
        "--type=json",
        "--patch",
        patch,
    ]
}

const fn created(namespace: &str) -> [&str; 5] {
    ["create", "--namespace", namespace, "--filename", "-"]
}

/// Patches of a JSON document that replace one member each.
fn replaced(path: &str, value: impl Into<Value>) -> String {
    json!([{ "op": "add", "path": path, "value": value.into() }]).to_string()
}

/// The account of the installed form: only its own Secret and the CA of its webhooks.
pub(super) fn of_addresses(stack: &Stack, _: &Candidate) -> Proof {
    let mut account = Account::new(stack, access::ACCOUNT);
    let (secrets, webhooks) = ("ipam-secret-writes", "ipam-webhook-writes");
    for (what, kind) in [
        ("a token", "kubernetes.io/service-account-token"),
        ("a Secret of another name", "Opaque"),
    ] {
        account.denies(secrets, what, &created(NAMESPACE), Some(&secret("other", kind, None)))?;
    }
    let relabelled = replaced("/metadata/annotations", json!({ "a": "b" }));
    let renewed = replaced("/data/more", "eA==");
    account.accepts("its label", &patched("secret", SECRET, NAMESPACE, &relabelled), None)?;
    account.accepts("its content", &patched("secret", SECRET, NAMESPACE, &renewed), None)?;
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let own = own_configuration(stack, kind)?;
        let name = own["metadata"]["name"].as_str().context("no name")?;
        let bundle = own["webhooks"][0]["clientConfig"]["caBundle"].clone();
        ensure!(bundle.is_string(), "{name} has no CA");
        let same = replaced("/webhooks/0/clientConfig/caBundle", bundle);
        account.accepts("a CA", &patched(kind, name, NAMESPACE, &same), None)?;
        for (path, value) in [
            ("/webhooks/0/rules/0/apiGroups", json!([""])),
            ("/webhooks/0/rules/0/resources", json!(["secrets"])),
            ("/webhooks/0/failurePolicy", json!("Ignore")),
            ("/webhooks/0/clientConfig/service/namespace", json!("default")),
            ("/webhooks/0/timeoutSeconds", json!(1)),
            // The API server itself denies an owner to who may not delete the object.
            ("/metadata/finalizers", json!(["example.org/never"])),
        ] {
            let patch = replaced(path, value);
            account.denies(webhooks, path, &patched(kind, name, NAMESPACE, &patch), None)?;
        }
    }
    account.proof()
}

fn own_configuration(stack: &Stack, kind: &str) -> anyhow::Result<Value> {
    let mut all = list(stack, NAMESPACE, kind)?.into_iter();
    let own = all.find(|one| one["webhooks"][0]["clientConfig"]["service"]["namespace"] == NAMESPACE);
    own.with_context(|| format!("no {kind} of {NAMESPACE}"))
}

/// The account of the process of all products, which may write to Secrets of all namespaces by its roles. The process
/// itself is not installed: the policies alone decide.
pub(super) fn of_all_products(stack: &Stack, candidate: &Candidate) -> Proof {
    let documents = candidate.documents(stack, "all-in-one-self-managed.yaml")?;
    let wanted = |document: &&Value| {
        let kind = document["kind"].as_str().unwrap_or_default();
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        RIGHTS.contains(&kind) || [CONVERTED, OWNER, HOSTS].contains(&name)
    };
    let mut installed: Vec<Value> = documents.iter().filter(wanted).cloned().collect();
    for document in &mut installed {
        // Without the process no webhook converts the owner.
        let is_owner = document["metadata"]["name"] == OWNER;
        if let Some(Value::Object(spec)) = document.get_mut("spec").filter(|_| is_owner) {
            spec.remove("conversion");
        }
    }
    stack.send(&["apply", "--server-side"], &installed)?;
    let namespace = stack.create_namespace("own-writes")?;
    let proof = in_namespace(stack, &namespace);
    stack.send(&["delete", "--wait=false"], &installed)?;
    proof
}

fn in_namespace(stack: &Stack, namespace: &TestNamespace<'_>) -> Proof {
    let mut account = Account::new(stack, MANAGER);
    let (secrets, definitions) = ("metal3-secret-writes", "metal3-definition-writes");
    let name = namespace.name.as_str();
    let token = secret("token", "kubernetes.io/service-account-token", None);
    // The API server reads new policies a moment later.
    until(LONG, "the policy", || {
        Ok(account.send(&created(name), Some(&token)).err().map(drop))
    })?;
    account.denies(secrets, "a token", &created(name), Some(&token))?;
    account.denies(
        secrets,
        "a Secret of a user",
        &created(name),
        Some(&secret("login", "Opaque", None)),
    )?;
    let data = secret("data", "infrastructure.cluster.x-k8s.io/secret", None);
    account.accepts("data of a machine", &created(name), Some(&data))?;

    namespace.apply(&secret("bmc", "Opaque", None))?;
    let label = replaced("/metadata/labels", json!({ "environment.metal3.io": "baremetal" }));
    account.accepts("a label", &patched("secret", "bmc", name, &label), None)?;
    let content = replaced("/data/key", "eQ==");
    account.denies(secrets, "a password", &patched("secret", "bmc", name, &content), None)?;

    let owner = owner(namespace)?;
    let fixed = replaced("/immutable", true);
    account.denies(
        secrets,
        "no change any more",
        &patched("secret", "bmc", name, &fixed),
        None,
    )?;
    let endpoint = secret("endpoint", "Opaque", Some(&owner));
    account.accepts("an endpoint", &created(name), Some(&endpoint))?;
    namespace.apply(&endpoint)?;
    account.accepts("a new endpoint", &patched("secret", "endpoint", name, &content), None)?;

    let own = own_configuration(stack, "validatingwebhookconfigurations")?;
    let bundle = replaced(
        "/spec/conversion/webhook/clientConfig/caBundle",
        own["webhooks"][0]["clientConfig"]["caBundle"].clone(),
    );
    account.accepts(
        "a CA",
        &patched("customresourcedefinition", CONVERTED, name, &bundle),
        None,
    )?;
    let elsewhere = replaced("/spec/conversion/webhook/clientConfig/service/namespace", "default");
    account.denies(
        definitions,
        "another converter",
        &patched("customresourcedefinition", CONVERTED, name, &elsewhere),
        None,
    )?;
    namespace.apply(&json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": "h0" }, "spec": { "online": false },
    }))?;
    let deleted = ["delete", HOSTS, "h0", "--namespace", name];
    account.denies("metal3-host-writes", "the deletion of a host", &deleted, None)?;
    account.proof()
}

/// The reference to a Metal3Cluster of the namespace.
fn owner(namespace: &TestNamespace<'_>) -> anyhow::Result<Value> {
    let version = "infrastructure.cluster.x-k8s.io/v1beta2";
    let cluster = json!({"apiVersion": version, "kind": "Metal3Cluster", "metadata": { "name": "owner" },
        "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } }});
    // A new definition is served a moment later.
    until(LONG, "the kind of the owner", || Ok(namespace.apply(&cluster).ok()))?;
    let uid = namespace.get(&format!("{OWNER}/owner"))?["metadata"]["uid"].clone();
    Ok(json!({"apiVersion": version, "kind": "Metal3Cluster", "name": "owner", "uid": uid, "controller": true}))
}

impl Candidate {
    /// The documents of a file of the release, with the variables of clusterctl.
    fn documents(&self, stack: &Stack, file: &str) -> anyhow::Result<Vec<Value>> {
        let path = self.file(file);
        ensure!(fs::exists(&path)?, "{} is missing", path.display());
        let text = stack.run(
            "clusterctl",
            &["generate", "yaml", "--from", &path.to_string_lossy()],
            None,
        )?;
        documents(&text)
    }
}
