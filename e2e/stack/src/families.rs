//! The Go modules to build: one per family, pinned by its go.mod and go.sum, compiled into this program.
//!
//! Shared dependencies have the versions of Kubernetes, so that the compiler builds each package once: a build from scratch
//! takes half the time, and the API server has the dependencies of its release.
//!
//! Pure data. A family's cache name depends on its files and on the build recipe, so a cached binary is never stale.

/// A Go module and the programs built from it.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// The module whose version names the family.
    pub(crate) module: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) programs: &'static [Program],
    /// Package with the version that the programs print, when the linker has to set it.
    pub(crate) version_package: Option<&'static str>,
}

/// A program: its name in the cache and its package.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package }
}

macro_rules! module_files {
    ($family:literal, $($file:literal),+) => {
        &[$(($file, include_str!(concat!("../modules/", $family, "/", $file)))),+]
    };
}

pub(crate) const ETCD: Family = Family {
    name: "etcd",
    module: "go.etcd.io/etcd/server/v3",
    files: module_files!("etcd", "go.mod", "go.sum"),
    programs: &[program("etcd", "go.etcd.io/etcd/server/v3")],
    version_package: None,
};

pub(crate) const KUBERNETES: Family = Family {
    name: "kubernetes",
    module: "k8s.io/kubernetes",
    files: module_files!("kubernetes", "go.mod", "go.sum"),
    programs: &[
        program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        program(
            "kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        program("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    version_package: Some("k8s.io/component-base/version"),
};

pub(crate) const CERT_MANAGER: Family = Family {
    name: "cert-manager",
    module: "github.com/cert-manager/cert-manager",
    files: module_files!("cert-manager", "go.mod", "go.sum", "main.go", "injector.go"),
    programs: &[program("cert-manager", ".")],
    version_package: None,
};

pub(crate) const CLUSTER_API: Family = Family {
    name: "cluster-api",
    module: "sigs.k8s.io/cluster-api",
    files: module_files!("cluster-api", "go.mod", "go.sum"),
    programs: &[
        program("clusterctl", "sigs.k8s.io/cluster-api/cmd/clusterctl"),
        program("cluster-api-controller", "sigs.k8s.io/cluster-api/core"),
        program(
            "kubeadm-bootstrap-controller",
            "sigs.k8s.io/cluster-api/bootstrap/kubeadm",
        ),
        program(
            "kubeadm-control-plane-controller",
            "sigs.k8s.io/cluster-api/controlplane/kubeadm",
        ),
    ],
    version_package: Some("sigs.k8s.io/cluster-api/version"),
};

/// Reads the charts of the release.
pub(crate) const HELM: Family = Family {
    name: "helm",
    module: "helm.sh/helm/v3",
    files: module_files!("helm", "go.mod", "go.sum"),
    programs: &[program("helm", "helm.sh/helm/v3/cmd/helm")],
    version_package: None,
};

/// Signs and verifies a release.
pub(crate) const COSIGN: Family = Family {
    name: "cosign",
    module: "github.com/sigstore/cosign/v2",
    files: module_files!("cosign", "go.mod", "go.sum"),
    programs: &[program("cosign", "github.com/sigstore/cosign/v2/cmd/cosign")],
    version_package: None,
};

/// Reads the workflows.
pub(crate) const ACTIONLINT: Family = Family {
    name: "actionlint",
    module: "github.com/rhysd/actionlint",
    files: module_files!("actionlint", "go.mod", "go.sum"),
    programs: &[program("actionlint", "github.com/rhysd/actionlint/cmd/actionlint")],
    version_package: None,
};

/// Reads the manifest of the plugin of kubectl.
pub(crate) const KREW: Family = Family {
    name: "krew",
    module: "sigs.k8s.io/krew",
    files: module_files!("krew", "go.mod", "go.sum"),
    programs: &[
        program("krew", "sigs.k8s.io/krew/cmd/krew"),
        program("validate-krew-manifest", "sigs.k8s.io/krew/cmd/validate-krew-manifest"),
    ],
    version_package: None,
};

/// Installs providers from objects. It has the versions of its release: its Cluster API and controller-runtime are older than
/// those of the stack.
pub(crate) const CLUSTER_API_OPERATOR: Family = Family {
    name: "cluster-api-operator",
    module: "sigs.k8s.io/cluster-api-operator",
    files: module_files!("cluster-api-operator", "go.mod", "go.sum"),
    programs: &[
        program("cluster-api-operator", "sigs.k8s.io/cluster-api-operator/cmd"),
        program("kubectl-operator", "sigs.k8s.io/cluster-api-operator/cmd/plugin"),
    ],
    version_package: None,
};

/// In build order: the servers first, so that a late failure leaves the programs that start early.
pub(crate) const FAMILIES: &[Family] = &[ETCD, KUBERNETES, CERT_MANAGER, CLUSTER_API];

/// What reads the files of a release; a stack starts without it.
pub(crate) const READERS: &[Family] = &[HELM];

/// What checks a release. Each is built when it is first needed.
pub(crate) const CHECKERS: &[Family] = &[COSIGN, ACTIONLINT, KREW, CLUSTER_API_OPERATOR];

/// The families of an API server without controllers.
pub(crate) const SERVERS: &[Family] = &[ETCD, KUBERNETES];

/// Images of Cluster API that are named like their program.
pub(crate) const CLUSTER_API_IMAGES: &[&str] = &[
    "cluster-api-controller",
    "kubeadm-bootstrap-controller",
    "kubeadm-control-plane-controller",
];

/// Increment when the build commands of a family change.
const RECIPE: u8 = 2;

impl Family {
    /// Version of the main module, as go.mod pins it: `v1.36.3`.
    pub(crate) fn version(&self) -> &'static str {
        let go_mod = self
            .files
            .iter()
            .find(|(name, _)| *name == "go.mod")
            .map_or("", |(_, text)| text);
        go_mod
            .lines()
            .find_map(|line| required_version(line, self.module))
            .unwrap_or("unknown")
    }

    /// `kubernetes-v1.36.3-0123456789abcdef`.
    pub(crate) fn cache_name(&self) -> String {
        let texts = self
            .files
            .iter()
            .flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
        format!(
            "{}-{}-{:016x}",
            self.name,
            self.version(),
            checksum([RECIPE].as_slice(), texts)
        )
    }

    /// The linker flags that set the version of the programs.
    pub(crate) fn linker_flags(&self) -> String {
        let version = self.version();
        let mut numbers = version.trim_start_matches('v').split('.');
        match (self.version_package, numbers.next(), numbers.next()) {
            (Some(package), Some(major), Some(minor)) => format!(
                "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
            ),
            _ => "-s -w".to_owned(),
        }
    }
}

/// The version in a line `[require] MODULE VERSION [// comment]`.
fn required_version<'a>(line: &'a str, module: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace().skip_while(|word| *word == "require");
    let version = words.next().filter(|word| *word == module).and_then(|_| words.next())?;
    version.starts_with('v').then_some(version)
}

/// FNV-1a, 64 bits: detects changes of lock files; no cryptographic strength required.
fn checksum<'a>(first: &'a [u8], rest: impl Iterator<Item = &'a [u8]>) -> u64 {
    std::iter::once(first)
        .chain(rest)
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The version of each module of a family.
    fn versions(family: &Family) -> BTreeMap<&'static str, &'static str> {
        let go_mod = family.files.iter().find(|(name, _)| *name == "go.mod").unwrap().1;
        let words = |line: &'static str| {
            line.trim_start_matches("replace ")
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        let (replaced, required): (Vec<_>, Vec<_>) =
            go_mod.lines().map(words).partition(|words| words.get(1) == Some(&"=>"));
        let required = required
            .into_iter()
            .filter(|words| words.get(1).is_some_and(|word| word.starts_with('v')));
        let required = required.map(|words| (words[0], words[1]));
        required
            .chain(replaced.into_iter().map(|words| (words[0], words[3])))
            .collect()
    }

    #[test]
    fn dependencies_shared_with_kubernetes_have_its_versions() {
        let kubernetes = versions(&KUBERNETES);
        for family in [CERT_MANAGER, CLUSTER_API, HELM] {
            let own = versions(&family);
            let others: Vec<_> = own
                .iter()
                .filter(|(module, version)| kubernetes.get(*module).is_some_and(|other| other != *version))
                .collect();
            assert_eq!(others, [], "{}", family.name);
            assert!(own.contains_key("k8s.io/client-go"), "{}", family.name);
        }
    }

    #[test]
    fn every_family_pins_its_version() {
        for family in FAMILIES.iter().chain(READERS).chain(CHECKERS) {
            assert!(
                family.version().starts_with('v'),
                "{}: {}",
                family.name,
                family.version()
            );
        }
    }

    #[test]
    fn version_is_read_from_a_require_line_only() {
        let table = [
            ("\tk8s.io/kubernetes v1.36.3 // indirect", Some("v1.36.3")),
            ("require k8s.io/kubernetes v1.36.3", Some("v1.36.3")),
            ("\tk8s.io/kubernetes/cmd/kube-apiserver", None),
            ("\tk8s.io/kubernetes => k8s.io/kubernetes v1.0.0", None),
            ("", None),
        ];
        for (line, version) in table {
            assert_eq!(required_version(line, "k8s.io/kubernetes"), version, "{line}");
        }
    }

    #[test]
    fn changed_lock_file_changes_the_cache_name() {
        let one = checksum(b"", [b"a".as_slice(), b"b"].into_iter());
        let other = checksum(b"", [b"a".as_slice(), b"c"].into_iter());
        assert_ne!(one, other);
        assert_eq!(
            checksum(b"a", std::iter::empty()),
            0xaf63_dc4c_8601_ec8c,
            "the published test vector"
        );
    }

    #[test]
    fn linker_sets_the_version_of_programs() {
        assert!(
            KUBERNETES.linker_flags().contains("version.gitMinor=36"),
            "{}",
            KUBERNETES.linker_flags()
        );
        assert_eq!(ETCD.linker_flags(), "-s -w");
    }
}
