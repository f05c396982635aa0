//! Which host a machine would choose, and why not the others: the text of `capm3 select`.

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::node_reuse_owner;

use super::facts::{associated, chosen, recorded};
use super::resolve::{others, resolve};
use super::reuse::has_namesake;
use crate::host_choice::{Candidate, HostChooser, UnreadableSelector};

/// The objects that decide about the choice.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The machine.
    pub machine: &'a Metal3Machine,
    /// Its Machine, if there is one.
    pub owner: Option<&'a Machine>,
    /// Its Cluster, if there is one.
    pub cluster: Option<&'a Cluster>,
    /// The Metal3Clusters of its namespace.
    pub metal3_clusters: &'a [Metal3Cluster],
    /// The hosts of its namespace.
    pub hosts: &'a [BareMetalHost],
    /// The Machines of its namespace.
    pub machines: &'a [Machine],
}

impl Question<'_> {
    /// One line each for what the machine has, for the hosts that it can claim in the order of its choice, and for the
    /// others with the reason.
    ///
    /// # Errors
    /// When the machine's selector is invalid.
    pub fn answer(&self) -> Result<Vec<String>, UnreadableSelector> {
        let mut candidate_machine = self.machine.clone();
        candidate_machine.spec.failure_domain = self.owner.and_then(|owner| owner.spec.failure_domain.clone());
        let owner = self.owner.and_then(node_reuse_owner);
        let chooser = HostChooser::try_new(&candidate_machine, owner.as_deref())?;
        let is_shared = |owner| has_namesake(owner, self.hosts, self.machines);
        let mut chooser = chooser.with_namesake(self.owner.is_some_and(is_shared));
        if let (Some(own), Some(cluster)) = (self.metal3_cluster(), self.cluster) {
            chooser = chooser.with_sites(own, others(own, cluster, self.metal3_clusters));
        }
        let order = chooser.order(self.hosts);
        let mut lines = Vec::new();
        if let Some(host) = associated(self.machine).or_else(|| order.own.and_then(name)) {
            lines.push(format!("has BareMetalHost {host}"));
        } else if let Some(host) = chosen(self.machine) {
            lines.push(format!("has chosen BareMetalHost {host}, which it takes if it can"));
        }
        if order.own.is_some() {
            return Ok(lines);
        }
        lines.push(format!(
            "can claim {} of {} hosts, in this order:",
            order.candidates.len(),
            self.hosts.len()
        ));
        lines.extend(order.candidates.iter().map(candidate));
        let refused = order.refusals.iter().map(|(host, why)| format!("- {host}: {why}"));
        lines.extend(refused);
        Ok(lines)
    }

    fn metal3_cluster(&self) -> Option<&Metal3Cluster> {
        let all: Vec<&Metal3Cluster> = self.metal3_clusters.iter().collect();
        let domain = self.owner.and_then(|owner| owner.spec.failure_domain.as_deref());
        self.cluster
            .and_then(|cluster| resolve(self.machine, recorded(self.machine), domain, cluster, &all).one())
    }
}

fn candidate(candidate: &Candidate<'_>) -> String {
    let kept = if candidate.is_reused {
        ", kept for its owner"
    } else {
        ""
    };
    let near = if candidate.is_in_domain {
        ", in its failure domain"
    } else {
        ""
    };
    format!("+ {}{kept}{near}", name(candidate.host).unwrap_or_default())
}

fn name(host: &BareMetalHost) -> Option<&str> {
    host.metadata.name.as_deref()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn lines(domain: Option<&str>, sites: &[Metal3Cluster]) -> Vec<String> {
        let of = |spec: Value| json!({ "metadata": { "name": "m", "namespace": "metal" }, "spec": spec });
        let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "mixed" });
        let cluster = json!({ "metadata": { "name": "mixed" }, "spec": { "infrastructureRef": reference } });
        let owner = of(
            json!({ "clusterName": "mixed", "failureDomain": domain, "bootstrap": {},
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": "m" } }),
        );
        let host = |name: &str, domain: &str| {
            let labels = json!({ "infrastructure.cluster.x-k8s.io/failure-domain": domain });
            from_value(json!({ "metadata": { "name": name, "namespace": "metal", "labels": labels }, "spec": { "online": true },
                "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0,
                    "provisioning": { "state": "available", "ID": "", "image": { "url": "" } } } }))
            .unwrap()
        };
        let question = Question {
            machine: &from_value(of(json!({}))).unwrap(),
            owner: Some(&from_value(owner).unwrap()),
            cluster: Some(&from_value(cluster).unwrap()),
            metal3_clusters: sites,
            hosts: &[host("hn", "n"), host("hs", "s")],
            machines: &[],
        };
        question.answer().unwrap()
    }

    #[test]
    fn policy_is_that_of_the_site_with_the_failure_domain_of_the_machine() {
        let site = |name: &str| -> Metal3Cluster {
            let spec = json!({ "clusterName": "mixed", "failureDomainPolicy": "Required", "deploymentZones": [{ "name": name }] });
            from_value(json!({ "metadata": { "name": name, "namespace": "metal" }, "spec": spec })).unwrap()
        };
        let mut sites = [site("n"), site("s")];
        let found = lines(Some("s"), &sites);
        assert_eq!(
            found[..2],
            ["can claim 1 of 2 hosts, in this order:", "+ hs, in its failure domain"]
        );
        // Without the policy it is still no host of the other site.
        sites.iter_mut().for_each(|one| one.spec.failure_domain_policy = None);
        let found = lines(Some("s"), &sites);
        assert_eq!(
            found[1..],
            ["+ hs, in its failure domain", "- hn: a host of Metal3Cluster n"]
        );
    }
}
