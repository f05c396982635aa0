//! What the credentials of a tenant reach: all kinds that he can list, and what the audit log says of him.

use std::collections::BTreeSet;

use anyhow::ensure;
use serde_json::Value;

use crate::person::Person;

/// All that a tenant can list, by the role `metal3-tenant`.
const READABLE: [&str; 5] = [
    "configmaps",
    "events",
    "hostclaims.metal3.io",
    "resourcequotas",
    "secrets",
];
/// Prints a line `KIND: yes` for each kind that may be listed, with its objects, and `KIND: no` with the refusal for each other one.
const EVERYTHING: &str = r#"
for kind in $(kubectl api-resources --verbs=list -o name); do
  if kubectl get "$kind" -o yaml 2>&1; then echo "READ $kind"; fi
done
"#;
/// What belongs to administrators, each with the command of a reader.
const FOREIGN: [&str; 12] = [
    "get baremetalhosts -n hosts",
    "get baremetalhost host-1 -n hosts",
    "get baremetalhosts -A",
    "get hardwaredata -n hosts",
    "get hardwaredata host-1 -n hosts",
    "get hostfirmwaresettings -n hosts",
    "get hostdeploypolicies -n hosts",
    "get secrets -n hosts",
    "get secret host-1-login -n hosts",
    "get events -n hosts",
    "get hostclaims -A",
    "get configmap metal3-tenants -n metal3-system",
];

/// Reads all that the tenant can read, with every refusal, and fails if that is more or less than the role says.
pub(crate) async fn read_everything(tenant: &mut Person) -> anyhow::Result<String> {
    let outcome = tenant.run(EVERYTHING).await?;
    let read: BTreeSet<&str> = outcome
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("READ "))
        .collect();
    ensure!(read == BTreeSet::from(READABLE), "the tenant lists {read:?}");
    Ok(outcome.text)
}

/// Fails unless each read of what is not the tenant's is forbidden.
pub(crate) async fn read_foreign(tenant: &mut Person, other: &str) -> anyhow::Result<()> {
    let of_other = ["hostclaims", "secrets", "events"].map(|kind| format!("get {kind} -n {other}"));
    for command in FOREIGN.iter().map(|&one| one.to_owned()).chain(of_other) {
        tenant
            .refused(&format!("kubectl {command}"), "", &["Forbidden"])
            .await?;
    }
    Ok(())
}

/// Fails if the API server granted the account anything outside of its namespace, or any host. Returns the number of refusals.
pub(crate) fn audited(log: &str, namespace: &str) -> anyhow::Result<usize> {
    let user = format!("system:serviceaccount:{namespace}:tenant");
    let mut refused = 0_usize;
    for line in log.lines().filter(|line| line.contains(&user)) {
        // The last line may be in the making.
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let at = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default();
        let code = event
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        if at("/user/username") != user || code == 0 {
            continue;
        }
        let (resource, place) = (at("/objectRef/resource"), at("/objectRef/namespace"));
        let is_own = place == namespace || at("/objectRef/apiGroup") == "authorization.k8s.io" || resource.is_empty();
        if code == 403 {
            refused = refused.saturating_add(1);
        }
        ensure!(code >= 400 || is_own, "granted: {line}");
        ensure!(resource != "baremetalhosts" || code == 403, "a host: {line}");
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[(&str, &str, u16)]) -> String {
        let lines = lines.iter().map(|(resource, namespace, code)| {
            format!(
                r#"{{"user":{{"username":"system:serviceaccount:t:tenant"}},"objectRef":{{"resource":"{resource}","namespace":"{namespace}"}},"responseStatus":{{"code":{code}}}}}"#
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn grants_outside_of_the_namespace_and_of_hosts_fail() {
        let fine = log(&[
            ("secrets", "t", 200),
            ("secrets", "hosts", 403),
            ("baremetalhosts", "t", 403),
        ]);
        assert_eq!(audited(&fine, "t").unwrap(), 2);
        for wrong in [
            ("secrets", "hosts", 200),
            ("hostclaims", "", 200),
            ("baremetalhosts", "t", 404),
        ] {
            assert!(audited(&log(&[wrong]), "t").is_err(), "{wrong:?}");
        }
    }
}
