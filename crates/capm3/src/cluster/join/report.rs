//! The condition that follows from an answer of a workload cluster.
//!
//! What is missing counts before what is not known. The texts are fixed, except for names of this cluster's objects.

use metal3_api::infrastructure::conditions::cluster;
use metal3_capi::workload::join::{Endpoint, Requisite, Server};
use metal3_domain::reason::Reason;
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::plan::{Observed, UnknownReason};

use super::{Answer, Bootstraps};

/// Creates what kubeadm's control planes have: one phase of `kubeadm init` for each group of objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remedy {
    BootstrapToken,
    UploadConfig,
    Scheduler,
}

const REMEDIES: [Remedy; 3] = [Remedy::BootstrapToken, Remedy::UploadConfig, Remedy::Scheduler];

/// Condition and message.
pub(super) fn condition(answer: &Answer) -> (ConditionBuilder, String) {
    let type_ = cluster::JOIN_PREFLIGHT;
    let unknown = |reason, message: String| (ConditionBuilder::mark_unknown(type_, reason, ""), message);
    match &answer.report.server {
        Server::NoAccess(why) => return unknown(cluster::REASON_KUBECONFIG_UNUSABLE, why.clone()),
        Server::Silent => {
            let message = "the API server of the kubeconfig does not answer this manager, so what workers need to join is not \
                           known; check its address, and the network from here";
            return unknown(cluster::REASON_WORKLOAD_UNREACHABLE, message.to_owned());
        }
        Server::Answers => {}
    }
    let mut missing = missing(answer);
    let not_known = not_known(answer);
    if !missing.is_empty() {
        missing.extend(not_known.into_iter().map(|(_, line)| line));
        let message = missing.join("\n");
        let reason = cluster::REASON_REQUISITES_MISSING;
        let builder = ConditionBuilder::mark_false(type_, reason, Severity::Warning, "");
        return (builder, message);
    }
    if let Some((reason, _)) = not_known.first() {
        let lines: Vec<&str> = not_known.iter().map(|(_, line)| line.as_str()).collect();
        return unknown(*reason, lines.join("\n"));
    }
    let builder = ConditionBuilder::mark_true(type_, cluster::REASON_REQUISITES_FOUND);
    (builder, opaque(&answer.bootstraps).unwrap_or_default())
}

/// Whether nothing is left to look for.
pub(crate) fn is_final(answer: &Answer) -> bool {
    let is_answered = answer.report.server == Server::Answers;
    is_answered && missing(answer).is_empty() && not_known(answer).is_empty()
}

/// What was not looked for.
fn opaque(bootstraps: &Bootstraps) -> Option<String> {
    let mut kinds: Vec<&str> = bootstraps.others.iter().map(String::as_str).collect();
    if bootstraps.has_plain_data {
        kinds.push("bootstrap data without a configuration");
    }
    (!kinds.is_empty()).then(|| {
        format!(
            "endpoint and kubeconfig work; what else machines with {} need is known to their bootstrap provider only",
            kinds.join(", ")
        )
    })
}

fn missing(answer: &Answer) -> Vec<String> {
    let absent = |requisite: &Requisite| answer.report.requisites.get(requisite) == Some(&Observed::Absent);
    let mut lines = Vec::new();
    for remedy in REMEDIES {
        let of_remedy = Requisite::OF_KUBEADM
            .into_iter()
            .filter(|one| remedy_of(*one) == Some(remedy));
        let names: Vec<String> = of_remedy.filter(absent).map(name).collect();
        if !names.is_empty() {
            lines.push(missing_line(remedy, &names.join(", ")));
        }
    }
    let is_there = || !absent(&Requisite::ClusterInfo);
    let at = endpoint(answer);
    // Without the ConfigMap nothing shows whether it may be read.
    match answer.report.endpoint.filter(|_| answer.bootstraps.has_kubeadm && is_there()) {
        Some(Endpoint::Refuses) => lines.push(format!(
            "* {at} refuses requests without credentials, so `kubeadm join` cannot read ConfigMap kube-public/cluster-info; \
             RoleBinding kube-public/kubeadm:bootstrap-signer-clusterinfo permits it (`kubeadm init phase bootstrap-token`), unless \
             the API server runs with --anonymous-auth=false"
        )),
        Some(Endpoint::HasNoInfo) => lines.push(format!(
            "* {at} has no ConfigMap kube-public/cluster-info, which the API server of the kubeconfig has; the endpoint of the \
             Cluster leads to another cluster"
        )),
        Some(Endpoint::SendsInfo | Endpoint::Fails | Endpoint::Silent) | None => {}
    }
    lines
}

fn missing_line(remedy: Remedy, names: &str) -> String {
    match remedy {
        Remedy::BootstrapToken => format!(
            "* the workload cluster lacks what `kubeadm join` reads and may do: {names}; create it with `kubeadm init phase \
             bootstrap-token`, or use the bootstrap provider of the control plane"
        ),
        Remedy::UploadConfig => format!(
            "* the workload cluster lacks the configuration for `kubeadm join`: {names}; create it with `kubeadm init phase \
             upload-config all`, or use the bootstrap provider of the control plane"
        ),
        Remedy::Scheduler => {
            format!("* no scheduler is elected: {names} does not exist; without one no Pod starts on the Nodes")
        }
    }
}

/// What is not known, by reason. Missing permissions come first.
fn not_known(answer: &Answer) -> Vec<(Reason, String)> {
    let of_requisites = |matches: fn(&UnknownReason) -> bool| {
        let unknown = answer
            .report
            .requisites
            .iter()
            .filter(|(_, found)| found.unknown().is_some_and(matches));
        let names: Vec<String> = unknown.map(|(requisite, _)| name(*requisite)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let is_refused = |why: &UnknownReason| *why == UnknownReason::NotPermitted;
    let refused = of_requisites(is_refused).map(|names| {
        let line = format!("* the user of the kubeconfig is not accepted, or may not get {names}; permit it");
        (cluster::REASON_WORKLOAD_FORBIDDEN, line)
    });
    let unreachable = cluster::REASON_WORKLOAD_UNREACHABLE;
    let failed = of_requisites(|why| *why != UnknownReason::NotPermitted).map(|names| {
        let line =
            format!("* the API server of the kubeconfig fails, or does not answer in time, when asked for {names}");
        (unreachable, line)
    });
    let at = endpoint(answer);
    let endpoint = match answer.report.endpoint {
        Some(Endpoint::Silent) => Some(format!(
            "* {at} does not answer this manager with a certificate of the kubeconfig's authority; machines may still reach it"
        )),
        Some(Endpoint::Fails) => Some(format!("* {at} answers this manager with an error")),
        Some(Endpoint::SendsInfo | Endpoint::HasNoInfo | Endpoint::Refuses) | None => None,
    };
    let endpoint = endpoint.map(|line| (unreachable, line));
    [refused, failed, endpoint].into_iter().flatten().collect()
}

fn endpoint(answer: &Answer) -> String {
    match &answer.endpoint {
        Some((host, port)) if host.contains(':') => format!("the endpoint [{host}]:{port}"),
        Some((host, port)) => format!("the endpoint {host}:{port}"),
        None => "the endpoint".to_owned(),
    }
}

const fn remedy_of(requisite: Requisite) -> Option<Remedy> {
    match requisite {
        Requisite::ClusterInfo
        | Requisite::RequestCertificate
        | Requisite::ApproveCertificate
        | Requisite::GetNodes => Some(Remedy::BootstrapToken),
        Requisite::KubeadmConfig
        | Requisite::KubeletConfig
        | Requisite::ReadKubeadmConfig
        | Requisite::ReadKubeletConfig => Some(Remedy::UploadConfig),
        Requisite::Scheduler => Some(Remedy::Scheduler),
        Requisite::Namespace => None,
    }
}

/// Kind and name of the object of a requisite.
fn name(requisite: Requisite) -> String {
    let kind = match requisite {
        Requisite::Namespace => "Namespace",
        Requisite::ClusterInfo | Requisite::KubeadmConfig | Requisite::KubeletConfig => "ConfigMap",
        Requisite::ReadKubeadmConfig | Requisite::ReadKubeletConfig => "RoleBinding",
        Requisite::RequestCertificate | Requisite::ApproveCertificate | Requisite::GetNodes => "ClusterRoleBinding",
        Requisite::Scheduler => "Lease",
    };
    match requisite.object() {
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}
