//! Writes that the sample policies, the quota or RBAC refuse, each with the field and what to do in the message.

use serde_json::{Value, json};

use crate::person::Person;

/// The message of a policy that is in force, and the words of the other ones.
const IMAGE: [&str; 3] = ["spec.image", "use one that starts with", "http://images.example/"];
const PLACE: [&str; 2] = ["spec.hostSelector.inNamespace", "set it to one of: hosts"];
const DEPLOY: [&str; 2] = ["spec.customDeploy", "set spec.image"];
const FINALIZER: [&str; 2] = ["metadata.finalizers", "delete the claim"];
const RECORD: [&str; 2] = ["metadata.annotations", "leave them as they are"];
const TOKEN: [&str; 2] = ["type: a token of an account", "use kubectl create token"];
const CREATE: &str = "kubectl create --dry-run=server -f -";

/// A claim of the sample page, with a changed spec.
pub(crate) fn claim(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut claim = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "HostClaim", "metadata": { "name": name },
        "spec": {
            "poweredOn": true,
            "image": { "url": "http://images.example/os.raw", "checksum": "c".repeat(64), "checksumType": "sha256", "format": "raw" },
            "hostSelector": { "inNamespace": "hosts" },
        },
    });
    change(&mut claim);
    claim
}

fn changed(place: &'static str, value: Value) -> Value {
    claim("refused", |claim| {
        let (parent, member) = place.rsplit_once('/').unwrap_or(("", place));
        if let Some(parent) = claim.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.insert(member.to_owned(), value);
        }
    })
}

/// Policies take effect some seconds after they were created.
pub(crate) async fn until_in_force(tenant: &mut Person, admin: &mut Person) -> anyhow::Result<()> {
    let elsewhere = changed("/spec/image/url", json!("http://elsewhere.example/os.raw"));
    let record = changed(
        "/metadata/annotations",
        json!({ "hostclaim.metal3.io/host": "hosts/host-1" }),
    );
    for (document, words) in [(elsewhere, IMAGE[0]), (record, RECORD[0]), (token(), TOKEN[0])] {
        tenant
            .until(&format!("{CREATE} <<'EOF' 2>&1 || true\n{document}\nEOF"), words)
            .await?;
    }
    let open = policy("open", &json!({}), &json!({}));
    let words = "spec.hostClaimNamespaces";
    admin
        .until(&format!("{CREATE} -n hosts <<'EOF' 2>&1 || true\n{open}\nEOF"), words)
        .await
}

/// New claims that a tenant may not have.
pub(crate) async fn of_new_claims(tenant: &mut Person) -> anyhow::Result<()> {
    let mut cases: Vec<(Value, &[&str])> = vec![
        (
            changed("/spec/hostSelector", json!({ "matchLabels": { "a": "b" } })),
            &PLACE,
        ),
        (changed("/spec/hostSelector/inNamespace", json!("kube-system")), &PLACE),
        (changed("/spec/customDeploy", json!({ "method": "anything" })), &DEPLOY),
        (
            changed("/metadata/finalizers", json!(["metal3.io/hostclaim"])),
            &FINALIZER,
        ),
        (
            changed(
                "/metadata/annotations",
                json!({ "hostclaim.metal3.io/host": "hosts/host-1" }),
            ),
            &RECORD,
        ),
        (
            changed("/spec/image/checksum", json!("http://elsewhere.example/sums")),
            &IMAGE,
        ),
    ];
    for url in [
        "http://elsewhere.example/os.raw",
        "http://images.example.org/os.raw",
        "http://images.example@elsewhere.example/os.raw",
        "http://images.example/../os.raw",
        "http://images.example/%2e%2E/os.raw",
        "http://images.example/a/..%2Fb/os.raw",
        "http://images.example/a/..%5Cb/os.raw",
        "file:///etc/passwd",
    ] {
        cases.push((changed("/spec/image/url", json!(url)), &IMAGE));
    }
    cases.push((token(), &TOKEN));
    for (document, words) in cases {
        tenant.refused(CREATE, &document.to_string(), words).await?;
    }
    let fine = claim("fine", |_| ()).to_string();
    let outcome = tenant.run_with(CREATE, &fine).await?;
    anyhow::ensure!(outcome.is_ok, "{}", outcome.text);
    Ok(())
}

/// Changes of a claim with a host that its tenant may not make.
pub(crate) async fn of_changes(tenant: &mut Person, name: &str) -> anyhow::Result<()> {
    let patch = |change: &str| format!("kubectl patch hostclaim {name} --type=merge -p '{change}'");
    let record = |value: &str| {
        patch(&format!(
            r#"{{"metadata":{{"annotations":{{"hostclaim.metal3.io/host":{value}}}}}}}"#
        ))
    };
    tenant
        .refused(&patch(r#"{"metadata":{"finalizers":null}}"#), "", &FINALIZER)
        .await?;
    tenant.refused(&record("null"), "", &RECORD).await?;
    tenant.refused(&record(r#""hosts/host-2""#), "", &RECORD).await?;
    for (change, words) in [
        (
            r#"{"spec":{"image":{"url":"http://elsewhere.example/os.raw"}}}"#,
            &IMAGE[..],
        ),
        (r#"{"spec":{"hostSelector":{"inNamespace":"kube-system"}}}"#, &PLACE[..]),
        (
            r#"{"spec":{"image":null,"customDeploy":{"method":"anything"}}}"#,
            &DEPLOY[..],
        ),
    ] {
        tenant.refused(&patch(change), "", words).await?;
    }
    let status = patch(r#"{"status":{"bareMetalHost":{"name":"host-2","namespace":"hosts"}}}"#);
    tenant
        .refused(
            &format!("{status} --subresource=status"),
            "",
            &["Forbidden", "hostclaims/status"],
        )
        .await?;
    tenant
        .refused("kubectl label namespace tenant-1 metal3-tenant-", "", &["Forbidden"])
        .await?;
    tenant
        .done(&format!("kubectl label hostclaim {name} team=blue"))
        .await
        .map(drop)
}

/// A Secret that would become a token of an account.
fn token() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "minted", "annotations": { "kubernetes.io/service-account.name": "default" } },
    })
}

/// One claim more than the quota permits.
pub(crate) async fn of_the_quota(tenant: &mut Person) -> anyhow::Result<()> {
    let third = claim("third", |_| ()).to_string();
    let words = [
        "exceeded quota: metal3-tenant",
        "count/hostclaims.metal3.io=1",
        "limited: count/hostclaims.metal3.io=2",
    ];
    tenant.refused("kubectl create -f -", &third, &words).await
}

fn policy(name: &str, namespaces: &Value, annotations: &Value) -> Value {
    json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "HostDeployPolicy", "metadata": { "name": name, "annotations": annotations },
        "spec": { "hostClaimNamespaces": namespaces } })
}

/// Policies that would open more than their author says.
pub(crate) async fn of_deploy_policies(administrator: &mut Person) -> anyhow::Result<()> {
    let all = ["spec.hostClaimNamespaces", "tenants.metal3.io/open-to-all"];
    let anchors = ["spec.hostClaimNamespaces.nameMatches", "start it with ^"];
    for (namespaces, words) in [
        (json!({}), all),
        (json!({ "nameMatches": "^.*$" }), all),
        (json!({ "hasLabels": [] }), all),
        (json!({ "nameMatches": "^.{1,}$" }), all),
        (json!({ "nameMatches": "^[a-z0-9-]+$" }), all),
        (json!({ "hasLabels": [{ "name": "kubernetes.io/metadata.name" }] }), all),
        (json!({ "nameMatches": "tenant-.*" }), anchors),
        (json!({ "nameMatches": "^a|tenant-.*$" }), anchors),
    ] {
        let document = policy("refused", &namespaces, &json!({})).to_string();
        administrator.refused(CREATE, &document, &words).await?;
    }
    for (namespaces, annotations) in [
        (json!({}), json!({ "tenants.metal3.io/open-to-all": "true" })),
        (json!({ "nameMatches": "^tenant-.*$" }), json!({})),
        (json!({ "names": [] }), json!({})),
        (Value::Null, json!({})),
    ] {
        let outcome = administrator
            .run_with(CREATE, &policy("fine", &namespaces, &annotations).to_string())
            .await?;
        anyhow::ensure!(outcome.is_ok, "{namespaces}: {}", outcome.text);
    }
    Ok(())
}
