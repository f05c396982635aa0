//! Wrong inputs: each is provoked, what is seen is compared with docs/install.md, and what the page says to do is done.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;

use super::page::Entry;
use super::ways::{self, NAMESPACE as MANAGERS};
use super::{Installation, install_limit};
use crate::claim::Proof;
use crate::products::load::list;
use crate::products::machines::{NAMESPACE, init};
use crate::wait::{Stopwatch, until};

/// What is typed about the host of the suite. Events have other times each run.
const WHY: &str = "kubectl metal3 why host/host-1 -n metal | sed '/^Events/,$d'";
/// In which a host that is served is registered.
const IDLE: Duration = Duration::from_secs(20);
const LOG: &str = "kubectl -n metal3-system logs deployment/metal3-controller-manager --all-pods";
/// What is printed while a Pod of the Deployment is replaced: the same command prints all a moment later.
const POD_ENDED: &str = "Error from server (NotFound): pods";
/// The manager of the host operator of the Go managers, as its release names it.
const GO: (&str, &str) = ("baremetal-operator-system", "baremetal-operator-controller-manager");

pub(super) fn no_cluster_api(installation: &Installation<'_>) -> Proof {
    installation.run_as_they_are(&ways::lines(&installation.readme, "kubectl")?)?;
    let said = installation.shown(
        "No Cluster API",
        &[(
            format!("{LOG} | grep -o 'waiting: clusters.*' | sort -u"),
            "the API server does not know the group",
        )],
        "`/readyz` says the same. Until all kinds are served, no controller of the process runs, that of hosts included. Install Cluster API, at least \
         with `clusterctl init --core cluster-api --bootstrap - --control-plane -`; the program goes on without a restart.",
    )?;
    installation.clean()?;
    Ok(said)
}

pub(super) fn unreachable(installation: &Installation<'_>) -> Proof {
    installation.with_cluster_api()?;
    // The lines as they are: nothing answers at the example's address.
    installation.run_as_they_are(&ways::lines(&installation.readme, "kubectl")?)?;
    installation.create_host()?;
    installation.shown(
        "Ironic cannot be reached",
        &[(WHY.to_owned(), "Ironic is unreachable")],
        "It is said two minutes after the first failed request; until then a new host has no status. The address is `IRONIC_ENDPOINT` in ConfigMap `ironic` or `metal3`, or the value `ironic.endpoint`: Pods must resolve and reach it. \
         After a change of the ConfigMap: `kubectl -n metal3-system rollout restart deployment/metal3-controller-manager`. Nothing else has to be done: \
         hosts continue when Ironic answers.",
    )
}

pub(super) fn login(installation: &Installation<'_>) -> Proof {
    let endpoint = json!({"data": {"IRONIC_ENDPOINT": installation.fleet.ironic_url()}});
    let [(username, _), _] = installation.fleet.logins();
    installation.run_as_they_are(&format!(
        "kubectl -n {MANAGERS} patch configmap metal3 --type=merge --patch '{endpoint}'
         kubectl -n {MANAGERS} create secret generic ironic-credentials --from-literal=username={username} \
           --from-literal=password=wrong --dry-run=client --output=yaml | kubectl apply --filename -
         kubectl -n {MANAGERS} rollout restart deployment/metal3-controller-manager"
    ))?;
    installation.available(MANAGERS)?;
    let remedy = "kubectl -n metal3-system create secret generic ironic-credentials --from-file=username --from-file=password \
                  --dry-run=client -o yaml | kubectl apply -f -";
    let said = installation.shown(
        "Ironic refuses the login",
        &[(WHY.to_owned(), "Ironic refuses the login")],
        &format!(
            "This is said after two minutes, too. Write the right login into the Secret. The program reads it without a restart:\n\n```sh\n{remedy}\n```"
        ),
    )?;
    installation.run_as_they_are(remedy)?;
    until(install_limit(), "a host that is available", || {
        Ok((installation.host()?["status"]["provisioning"]["state"] == "available").then_some(()))
    })?;
    installation.delete_host()?;
    Ok(format!("{said}, and a host became available with the right one"))
}

/// The definitions of a release that serves machines in an older version alone.
pub(super) fn definitions(installation: &Installation<'_>) -> Proof {
    let stack = installation.stack;
    let group = "infrastructure.cluster.x-k8s.io";
    let all = list(stack, "default", "customresourcedefinitions")?;
    let mut found = 0;
    for definition in all.iter().filter(|definition| definition["spec"]["group"] == group) {
        let versions = definition["spec"]["versions"]
            .as_array()
            .context("a definition without versions")?;
        let at = versions.iter().position(|version| version["name"] == "v1beta2");
        let at = at.context("a definition without v1beta2")?;
        let patch = json!([{"op": "replace", "path": format!("/spec/versions/{at}/served"), "value": false}]);
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        stack.kubectl(&["patch", "crd", name, "--type=json", "--patch", &patch.to_string()])?;
        found += 1;
    }
    ensure!(found > 0, "there is no definition of {group}");
    until(install_limit(), "an API server without the version", || {
        let versions = stack.kubectl(&["api-versions"])?;
        Ok((!versions.contains(&format!("{group}/v1beta2"))).then_some(()))
    })?;
    let restart = format!("kubectl -n {MANAGERS} rollout restart deployment/metal3-controller-manager");
    installation.run_as_they_are(&restart)?;
    installation.available(MANAGERS)?;
    let remedy = "sed 's|https://ironic.metal3-system.svc:6385|https://ironic.example:6385|' all-in-one.yaml \\\n  | kubectl apply --server-side --force-conflicts -f -";
    let said = installation.shown(
        "Definitions of another version",
        &[(
            format!("{LOG} | grep -o 'waiting: metal3machines.*' | sort -u"),
            "served as v1beta1 and not as v1beta2",
        )],
        &format!(
            "There is such a line for each kind. Until all are served, no controller of the process runs. With Helm, upgrade `metal3-rs-crds` before \
             `metal3-rs`; without it, apply the file of the same release. The program goes on without a restart:\n\n```sh\n{remedy}\n```"
        ),
    )?;
    installation.run(remedy)?;
    installation.create_host()?;
    until_registered(installation)?;
    installation.delete_host()?;
    installation.clean()?;
    Ok(format!("{said}, of {found} definitions"))
}

fn until_registered(installation: &Installation<'_>) -> anyhow::Result<()> {
    until(install_limit(), "a host that is registered", || {
        let state = &installation.host()?["status"]["provisioning"]["state"];
        Ok(["inspecting", "available"]
            .iter()
            .any(|wanted| state == wanted)
            .then_some(()))
    })
}

pub(super) fn go_manager(installation: &Installation<'_>) -> Proof {
    let (namespace, name) = GO;
    // Its image is not here: that it is wanted is enough.
    installation.run_as_they_are(&format!(
        "kubectl create namespace {namespace}
         kubectl -n {namespace} create deployment {name} --image=quay.io/metal3-io/baremetal-operator:v0.13.0"
    ))?;
    installation.run(&ways::lines(&installation.readme, "kubectl")?)?;
    let remedy = format!("kubectl -n {namespace} scale deployment/{name} --replicas=0");
    let said = installation.shown(
        "A Go manager still runs",
        &[(
            format!("{LOG} | grep -o 'controllers of hosts are idle.*' | sort -u"),
            "controllers of hosts are idle",
        )],
        &format!(
            "`/readyz` and an Event say the same. [migration.md](migration.md) has what to look at before, and the other ways. The hosts are served \
             when the Deployment has no replica:\n\n```sh\n{remedy}\n```"
        ),
    )?;
    installation.create_host()?;
    // One that is served is registered meanwhile.
    let watch = Stopwatch::start();
    until(install_limit(), "the end of the quiet time", || {
        Ok((watch.elapsed() >= IDLE).then_some(()))
    })?;
    let idle = installation.host()?;
    ensure!(
        idle["status"].is_null(),
        "a host is served next to a Go manager: {idle}"
    );
    installation.run_as_they_are(&remedy)?;
    until_registered(installation)?;
    installation.delete_host()?;
    installation.clean()?;
    let args = ["delete", "namespace", namespace, "--ignore-not-found"];
    installation.stack.kubectl(&args)?;
    Ok(said)
}

/// The last one: cert-manager of the stack does not recover.
pub(super) fn no_cert_manager(installation: &Installation<'_>) -> Proof {
    let kinds = "certificates.cert-manager.io issuers.cert-manager.io";
    installation.with_cluster_api()?;
    // kubectl remembers kinds for minutes, and who never had cert-manager has nothing to remember.
    installation.run_as_they_are(&format!("kubectl delete crd {kinds}\nrm -r \"$KUBECACHEDIR\""))?;
    // The namespace and the login, which the first lines of README.md create.
    let lines = ways::lines(&installation.readme, "kubectl")?;
    let first: Vec<&str> = lines.lines().take_while(|line| !line.starts_with("sed ")).collect();
    installation.run_as_they_are(&first.join("\n"))?;
    let refused = "no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"";
    let helm = "helm install metal3-rs charts/metal3-rs --namespace metal3-system --create-namespace";
    let remedy = "sed 's|https://ironic.metal3-system.svc:6385|https://ironic.example:6385|' all-in-one-self-managed.yaml \\\n  | kubectl apply --server-side -f -";
    installation.shown(
        "No cert-manager",
        &[
            ("kubectl apply --server-side -f all-in-one.yaml | grep -v serverside-applied".to_owned(), refused),
            (helm.to_owned(), refused),
        ],
        &format!(
            "Install cert-manager and repeat the command. Or install the form without it: `--set certificates=self-managed` for both charts, or\n\n```sh\n{remedy}\n```"
        ),
    )?;
    installation.run(remedy)?;
    installation.available(MANAGERS)?;
    installation.create_host()?;
    until(install_limit(), "a host that is available", || {
        Ok((installation.host()?["status"]["provisioning"]["state"] == "available").then_some(()))
    })?;
    installation.delete_host()?;
    Ok("the form without it is installed instead".to_owned())
}

impl Installation<'_> {
    /// Installs Cluster API, unless it is there.
    fn with_cluster_api(&self) -> anyhow::Result<()> {
        if self.stack.kubectl(&["api-versions"])?.contains("\ncluster.x-k8s.io/") {
            return Ok(());
        }
        init(self.stack, "--core cluster-api --bootstrap - --control-plane -")
    }

    /// Waits until each line prints its text, and compares all that they print with the page.
    fn shown(&self, title: &'static str, lines: &[(String, &str)], remedy: &str) -> Proof {
        let watch = Stopwatch::start();
        let mut seen = Vec::new();
        for (line, wanted) in lines {
            let mut last = String::new();
            let found = until(install_limit(), &format!("`{line}` to print `{wanted}`"), || {
                last = self.run_as_they_are(&format!("set +e\n({line}) 2>&1\ntrue"))?;
                Ok((last.contains(wanted) && !last.contains(POD_ENDED)).then(|| last.clone()))
            });
            seen.push((
                line.clone(),
                stable(&found.with_context(|| last.clone())?, self.fleet.ironic_url()),
            ));
        }
        let took = watch.elapsed();
        self.page.add(&Entry {
            title,
            seen,
            remedy: remedy.to_owned(),
        })?;
        let hosts = list(self.stack, NAMESPACE, "baremetalhosts").unwrap_or_default();
        Ok(format!("after {:.0} s, {} hosts", took.as_secs_f64(), hosts.len()))
    }
}

/// The text without what differs from run to run: times, durations, requests, and the address of this Ironic.
fn stable(text: &str, ironic: &str) -> String {
    let text = text.replace(ironic.trim_end_matches('/'), ways::EXAMPLE);
    let lines = text.lines().map(|line| {
        let words: Vec<String> = line.split(' ').map(word).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn word(word: &str) -> String {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_time = core.len() >= 20 && core.starts_with("20") && core.ends_with('Z') && core.contains('T');
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_duration = core.ends_with(['s', 'm', 'h'])
        && core.split(['s', 'm', 'h']).filter(|part| !part.is_empty()).all(digits)
        && core.starts_with(|c: char| c.is_ascii_digit());
    match core {
        _ if is_time => word.replace(core, "TIME"),
        _ if is_duration => word.replace(core, "…"),
        // The number of a request to Ironic.
        core if core.starts_with("req-") => word.replace(core, "req-…"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_durations_and_addresses_are_replaced() {
        let text = "since 2026-11-29T05:47:45Z (https://10.0.0.1:1/v1: closed), for up to 1m31s\nhosts metal3 v1beta1 10.0.0.1";
        let expected =
            "since TIME (https://ironic.example:6385/v1: closed), for up to …\nhosts metal3 v1beta1 10.0.0.1";
        assert_eq!(stable(text, "https://10.0.0.1:1"), expected);
        assert_eq!(stable("(A, for 9s)", "x"), "(A, for …)");
        assert_eq!(stable("(status 401, req-b6-3)", "x"), "(status 401, req-…)");
    }
}
