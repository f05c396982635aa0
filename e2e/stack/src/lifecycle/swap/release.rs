//! What a release of the Go managers is and serves, read from the files of its folder. Pure.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::yaml::documents;

/// The first release that knows the block on moves: before it, the way back needs `capm3 hand-back`.
const KNOWS_BLOCKS: (u64, u64) = (1, 14);
/// The first release whose host operator loads its provisioner from a file.
const HAS_PLUGIN: (u64, u64) = (1, 14);
/// The first release with a clusterctl provider of addresses.
const HAS_IPAM_PROVIDER: (u64, u64) = (1, 10);
/// The first release whose Metal3Cluster has `cloudProviderEnabled`, besides the older `noCloudProvider`.
const HAS_CLOUD_PROVIDER_ENABLED: (u64, u64) = (1, 10);
const ADDRESSES: &str = "ipam-controller-manager";
const HOSTS: &str = "baremetal-operator-controller-manager";
const MACHINES: &str = "metal3machines.infrastructure.cluster.x-k8s.io";
const OLDER: &str = "v1beta1";
const KERNEL: &str = "DEPLOY_KERNEL_URL";

/// A release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoRelease {
    series: (u64, u64),
    /// The definitions of machines, by name, which have no newer version than `v1beta1`.
    older: BTreeSet<String>,
    /// The namespace of the manager of addresses.
    pub(super) addresses: String,
    /// Whether its manager of hosts takes hosts for HostClaims.
    pub(super) serves_claims: bool,
    /// Whether its manager of hosts is installed with the addresses of the agent, without which older ones do not start.
    pub(super) names_agent: bool,
}

impl GoRelease {
    /// Reads it from the metadata of the provider and the components of machines, addresses and hosts.
    pub(super) fn read(metadata: &str, [machines, addresses, hosts]: [&str; 3]) -> anyhow::Result<Self> {
        let metadata: Value = serde_saphyr::from_str(metadata).context("reading metadata.yaml")?;
        let series = metadata["releaseSeries"].as_array().into_iter().flatten();
        let series = series.filter_map(|one| Some((one["major"].as_u64()?, one["minor"].as_u64()?)));
        let series = series.max().context("metadata.yaml has no releaseSeries")?;
        let machines = documents(machines)?;
        let crds = machines.iter().filter(|one| one["kind"] == "CustomResourceDefinition");
        let crds: Vec<&Value> = crds.filter(|crd| name(crd).starts_with("metal3")).collect();
        ensure!(
            crds.iter().any(|crd| name(crd) == MACHINES),
            "the components of machines do not define {MACHINES}"
        );
        let newest = |crd: &&&Value| {
            let versions = crd["spec"]["versions"].as_array();
            versions.is_some_and(|all| all.iter().all(|version| version["name"] == OLDER))
        };
        let older = crds.iter().filter(newest).map(|crd| name(crd).to_owned()).collect();
        let addresses = documents(addresses)?;
        let manager = deployment(&addresses, ADDRESSES)?;
        let namespace = manager["metadata"]["namespace"].as_str();
        let hosts = documents(hosts)?;
        let arguments = &deployment(&hosts, HOSTS)?["spec"]["template"]["spec"]["containers"][0]["args"];
        let mut arguments = arguments.as_array().into_iter().flatten();
        let mut maps = hosts.iter().filter(|one| one["kind"] == "ConfigMap");
        Ok(Self {
            series,
            older,
            addresses: namespace
                .context("the manager of addresses has no namespace")?
                .to_owned(),
            serves_claims: arguments.any(|argument| argument == "--hostclaims"),
            names_agent: maps.any(|map| !map["data"][KERNEL].is_null()),
        })
    }

    /// The newest release that the suite knows.
    #[cfg(test)]
    pub(super) fn for_test() -> Self {
        Self {
            series: KNOWS_BLOCKS,
            older: BTreeSet::new(),
            addresses: "metal3-ipam-system".to_owned(),
            serves_claims: true,
            names_agent: false,
        }
    }

    /// The newest release that has machines in `v1beta1` only.
    #[cfg(test)]
    pub(super) fn older_for_test() -> Self {
        Self {
            series: (1, 12),
            older: BTreeSet::from([MACHINES.to_owned()]),
            ..Self::for_test()
        }
    }

    /// As `capm3 preflight --to` takes it.
    pub(super) fn series(&self) -> String {
        format!("{}.{}", self.series.0, self.series.1)
    }

    /// The version under which it is in the clusterctl repository.
    pub(super) fn version(&self) -> String {
        format!("v{}.0", self.series())
    }

    pub(super) fn has_plugin(&self) -> bool {
        self.series >= HAS_PLUGIN
    }

    /// Otherwise the provider of machines contains the manager of addresses.
    pub(super) fn has_ipam_provider(&self) -> bool {
        self.series >= HAS_IPAM_PROVIDER
    }

    pub(super) fn needs_hand_back(&self) -> bool {
        self.series < KNOWS_BLOCKS
    }

    /// The definitions whose objects must be stored as `v1beta1` before the way back.
    pub(super) fn older(&self) -> &BTreeSet<String> {
        &self.older
    }

    /// Removes what an object in `v1beta1` has since a later release only.
    pub(super) fn remove_newer_members(&self, object: &mut Value) {
        let spec = object["spec"].as_object_mut();
        if let Some(spec) = spec.filter(|_| self.series < HAS_CLOUD_PROVIDER_ENABLED) {
            spec.remove("cloudProviderEnabled");
        }
    }

    /// What of the suite this release cannot have, each with the reason.
    pub(super) fn not_staged(&self) -> Vec<String> {
        let claim = "a host of a HostClaim: no manager of this release takes a host for one";
        (!self.serves_claims).then(|| claim.to_owned()).into_iter().collect()
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn deployment<'a>(documents: &'a [Value], wanted: &str) -> anyhow::Result<&'a Value> {
    let mut deployments = documents.iter().filter(|one| one["kind"] == "Deployment");
    let found = deployments.find(|one| name(one) == wanted);
    found.with_context(|| format!("the components have no Deployment {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = "releaseSeries: [{major: 1, minor: 9}, {major: 1, minor: 13}, {major: 0, minor: 20}]";

    fn machines(versions: &str) -> String {
        format!(
            "kind: CustomResourceDefinition\nmetadata: {{name: {MACHINES}}}\nspec: {{versions: [{versions}]}}\n---\n\
             kind: CustomResourceDefinition\nmetadata: {{name: ippools.ipam.metal3.io}}\nspec: {{versions: [{{name: v1beta1}}]}}"
        )
    }

    fn manager(namespace: &str, name: &str, arguments: &str) -> String {
        format!(
            "kind: Deployment\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{template: {{spec: {{containers: [{{args: [{arguments}]}}]}}}}}}"
        )
    }

    #[test]
    fn release_is_what_its_files_say() {
        let both = "{name: v1beta1}, {name: v1beta2}";
        let table = [
            ("--hostclaims, --a", both, "metal3-ipam-system", 0, true),
            ("--a", both, "metal3-ipam-system", 0, false),
            ("--a", "{name: v1beta1}", "capm3-system", 1, false),
        ];
        for (arguments, versions, namespace, older, serves_claims) in table {
            let files = [
                machines(versions),
                manager(namespace, ADDRESSES, ""),
                manager("b", HOSTS, arguments),
            ];
            let release = GoRelease::read(METADATA, files.each_ref().map(String::as_str)).unwrap();
            assert_eq!(release.series(), "1.13");
            assert_eq!(release.addresses, namespace);
            assert_eq!(release.older().len(), older, "{versions}");
            assert_eq!(release.serves_claims, serves_claims, "{arguments}");
            assert_eq!(release.not_staged().is_empty(), serves_claims);
        }
    }

    #[test]
    fn release_names_an_agent_if_its_map_of_variables_does() {
        for (variable, names_agent) in [(KERNEL, true), ("IRONIC_ENDPOINT", false)] {
            let map = format!("kind: ConfigMap\nmetadata: {{name: ironic}}\ndata: {{{variable}: http://192.0.2.1/a}}");
            let files = [
                machines("{name: v1beta1}"),
                manager("a", ADDRESSES, ""),
                [manager("b", HOSTS, ""), map].join("\n---\n"),
            ];
            let release = GoRelease::read(METADATA, files.each_ref().map(String::as_str)).unwrap();
            assert_eq!(release.names_agent, names_agent, "{variable}");
        }
    }

    #[test]
    fn cluster_has_only_the_members_of_its_release() {
        for (minor, expected) in [
            (9, r#"{"noCloudProvider":true}"#),
            (10, r#"{"cloudProviderEnabled":false,"noCloudProvider":true}"#),
        ] {
            let release = GoRelease {
                series: (1, minor),
                ..GoRelease::for_test()
            };
            let mut cluster = serde_json::json!({"spec": {"cloudProviderEnabled": false, "noCloudProvider": true}});
            release.remove_newer_members(&mut cluster);
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(cluster["spec"], expected, "1.{minor}");
        }
    }

    #[test]
    fn file_without_its_manager_is_an_error() {
        let files = [
            machines("{name: v1beta1}"),
            manager("a", "other", ""),
            manager("b", HOSTS, ""),
        ];
        let error = GoRelease::read(METADATA, files.each_ref().map(String::as_str)).unwrap_err();
        assert!(error.to_string().contains(ADDRESSES), "{error}");
    }

    #[test]
    fn steps_begin_with_the_release_that_needs_them() {
        for (minor, plugin, provider, hand_back) in [
            (9, false, false, true),
            (10, false, true, true),
            (13, false, true, true),
            (14, true, true, false),
        ] {
            let release = GoRelease {
                series: (1, minor),
                ..GoRelease::for_test()
            };
            assert_eq!(release.version(), format!("v1.{minor}.0"));
            let facts = (
                release.has_plugin(),
                release.has_ipam_provider(),
                release.needs_hand_back(),
            );
            assert_eq!(facts, (plugin, provider, hand_back), "1.{minor}");
        }
    }
}
