//! The commands of a switch, as a user types them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::session::{Session, Typed};
use super::upstream::{self, Upstream};
use crate::claims::stack::Stack;
use crate::lifecycle::audit::MANAGERS;
use crate::lifecycle::env::TestEnv;
use crate::lifecycle::install;
use crate::products::load::list;
use crate::products::machines;
use crate::products::release::FIRST;
use crate::wait::until;

/// Pods end within their grace period.
const GONE: Duration = Duration::from_secs(120);

/// Files of the products.
const HOSTS: &str = "hosts.yaml";
const IPAM: &str = "ipam.yaml";
const INFRASTRUCTURE: &str = "infrastructure.yaml";

/// Which managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Go,
    Ours,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Go => "the Go managers",
            Self::Ours => "this program",
        }
    }

    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Go => upstream::VERSION,
            Self::Ours => FIRST,
        }
    }
}

/// How to switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    /// Product by product: scale to 0, and apply.
    Scale,
    /// `clusterctl upgrade apply`, and apply for the hosts.
    Upgrade,
}

impl Way {
    /// The value of the flag.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scale => "scale",
            Self::Upgrade => "upgrade",
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Scale => "product by product, scaled to 0 and applied",
            Self::Upgrade => "by clusterctl upgrade",
        }
    }
}

/// A product: its namespace, Deployment and file.
pub(super) struct Product {
    pub(super) namespace: &'static str,
    pub(super) deployment: &'static str,
    pub(super) lease: &'static str,
    pub(super) user: &'static str,
    file: &'static str,
    /// The name of the flag of `clusterctl generate provider`.
    provider: Option<&'static str>,
}

#[cfg(test)]
impl Product {
    pub(super) fn for_test(user: &'static str, lease: &'static str) -> Self {
        Self {
            namespace: "n",
            deployment: "d",
            lease,
            user,
            file: HOSTS,
            provider: None,
        }
    }
}

/// Hosts first: the others read what it writes.
pub(super) fn products() -> [Product; 3] {
    let [machines, addresses, hosts] = &MANAGERS;
    let product = |manager: &crate::lifecycle::audit::Manager, deployment, file, provider| Product {
        namespace: manager.namespace,
        deployment,
        lease: manager.lease,
        user: manager.account.user,
        file,
        provider,
    };
    let hosts = product(hosts, "baremetal-operator-controller-manager", HOSTS, None);
    let addresses = product(addresses, "ipam-controller-manager", IPAM, Some("--ipam"));
    let machines = product(
        machines,
        "capm3-controller-manager",
        INFRASTRUCTURE,
        Some("--infrastructure"),
    );
    [hosts, addresses, machines]
}

/// A plain command, and a part of the one that works where Kubernetes refuses it.
pub(super) struct Plain {
    pub(super) is_forced: bool,
    files: &'static [&'static str],
    /// A part of the answer.
    reason: &'static str,
    pub(super) works: &'static str,
}

pub(super) const PLAIN: [Plain; 3] = [
    Plain {
        is_forced: false,
        files: &[IPAM, INFRASTRUCTURE],
        reason: "conflict",
        works: "--force-conflicts",
    },
    Plain {
        is_forced: true,
        files: &[INFRASTRUCTURE],
        reason: "is invalid",
        works: "kubectl patch crd",
    },
    Plain {
        is_forced: true,
        files: &[HOSTS],
        reason: "is invalid",
        works: "kubectl delete validatingwebhookconfiguration",
    },
];

impl Plain {
    pub(super) fn command(&self) -> String {
        let forced = if self.is_forced { " --force-conflicts" } else { "" };
        format!("kubectl apply --server-side{forced} -f {}", self.files.join(","))
    }

    /// Whether the command was refused for its own reason, of the several that a file may meet. Another one is an error.
    fn is_refused(&self, file: &str, typed: &Typed) -> anyhow::Result<bool> {
        let mut known = PLAIN.iter().filter(|one| one.files.contains(&file));
        ensure!(
            typed.succeeded || known.any(|one| typed.printed.contains(one.reason)),
            "{file} is refused for a reason that the suite does not know:\n{}",
            typed.printed
        );
        Ok(!typed.succeeded && typed.printed.contains(self.reason))
    }
}

pub(super) struct Installer<'a> {
    pub(super) env: &'a TestEnv<'a>,
    pub(super) upstream: &'a Upstream,
    pub(super) session: &'a Session,
}

impl Installer<'_> {
    fn stack(&self) -> &Stack {
        self.env.stack
    }

    fn folder(&self, family: Family) -> PathBuf {
        let name = match family {
            Family::Go => "go",
            Family::Ours => "out",
        };
        self.stack().places.state_file("swap").join(name)
    }

    /// Puts both into the clusterctl repository. `clusterctl` then offers the newer one, so it is published later.
    pub(super) fn publish(&self, family: Family) -> anyhow::Result<()> {
        let (stack, release) = (self.stack(), self.env.release);
        match family {
            Family::Go => self.upstream.publish(stack, &release.join("cluster-template.yaml"))?,
            Family::Ours => machines::publish(stack, release, FIRST)?,
        }
        let folder = self.folder(family);
        fs::create_dir_all(&folder)?;
        let hosts = match family {
            Family::Go => self.upstream.hosts(self.env.fleet)?,
            Family::Ours => install::hosts_components(self.env, FIRST)?,
        };
        for product in products() {
            let text = match product.provider {
                None => hosts.clone(),
                Some(flag) => {
                    let version = format!("metal3:{}", family.version());
                    let args = ["generate", "provider", flag, &version];
                    stack.run("clusterctl", &args, None)?
                }
            };
            fs::write(folder.join(product.file), text)?;
        }
        Ok(())
    }

    /// Installs the Go managers on an empty cluster.
    pub(super) fn first(&self) -> anyhow::Result<()> {
        let stack = self.stack();
        stack.kubectl(&["create", "namespace", install::HOSTS])?;
        install::create(stack, install::HOSTS, &install::ironic_credentials(self.env.fleet)?)?;
        self.apply(Family::Go, &products()[0], false)?;
        machines::init(
            stack,
            "--core cluster-api --bootstrap kubeadm --control-plane kubeadm --infrastructure metal3 --ipam metal3",
        )?;
        self.rolled_out()
    }

    /// Switches to these managers.
    pub(super) fn switch(&self, to: Family, way: Way) -> anyhow::Result<()> {
        self.before_apply(to)?;
        match way {
            Way::Scale => {
                for product in products() {
                    self.scale(&product, 0)?;
                    self.until_gone(&product)?;
                    self.apply(to, &product, true)?;
                    // Where the file does not contain the replicas, they stay as they were scaled.
                    if self.replicas(&product)? == "0" {
                        self.scale(&product, 1)?;
                    }
                    self.record_version(to, &product)?;
                }
            }
            Way::Upgrade => {
                self.apply(to, &products()[0], true)?;
                let version = to.version();
                let infrastructure = format!("capm3-system/metal3:{version}");
                let addresses = format!("metal3-ipam-system/metal3:{version}");
                let upgrade = ["clusterctl", "upgrade", "apply", "--infrastructure", &infrastructure];
                let upgrade = [&upgrade[..], &["--ipam", &addresses, "--wait-providers"]].concat();
                self.session.must(self.stack(), &upgrade)?;
            }
        }
        self.rolled_out()
    }

    /// Tries a plain command for the files of some products, without a change.
    pub(super) fn is_refused(&self, to: Family, plain: &Plain) -> anyhow::Result<bool> {
        let mut is_refused = false;
        for product in products().iter().filter(|product| plain.files.contains(&product.file)) {
            let file = self.folder(to).join(product.file);
            let file = file.to_str().context("the file's name is not text")?;
            let mut words = vec!["kubectl", "apply", "--server-side", "--dry-run=server"];
            if plain.is_forced {
                words.push("--force-conflicts");
            }
            words.extend(["-f", file]);
            let typed = self.session.type_in(self.stack(), &words)?;
            is_refused |= plain.is_refused(product.file, &typed)?;
        }
        Ok(is_refused)
    }

    /// Takes off what `kubectl apply` of the Go managers would leave half of: cert-manager wrote CA bundles into the
    /// conversion of a definition and into webhooks that the Go managers do not have, and the API server refuses the rest.
    fn before_apply(&self, to: Family) -> anyhow::Result<()> {
        const KIND: &str = "metal3clustertemplates.infrastructure.cluster.x-k8s.io";
        const NONE: &str = r#"--patch=[{"op":"add","path":"/spec/conversion","value":{"strategy":"None"}}]"#;
        const WEBHOOKS: &str = "baremetal-operator-validating-webhook-configuration";
        if to == Family::Ours {
            return Ok(());
        }
        let patch = ["kubectl", "patch", "crd", KIND, "--type=json", NONE];
        self.session.must(self.stack(), &patch)?;
        let delete = ["kubectl", "delete", "validatingwebhookconfiguration", WEBHOOKS];
        self.session.must(self.stack(), &delete)
    }

    fn apply(&self, family: Family, product: &Product, is_over_others: bool) -> anyhow::Result<()> {
        let file = self.folder(family).join(product.file);
        let file = file.to_str().context("the file's name is not text")?;
        let mut words = vec!["kubectl", "apply", "--server-side"];
        if is_over_others {
            words.push("--force-conflicts");
        }
        words.extend(["-f", file]);
        self.session.must(self.stack(), &words)
    }

    fn scale(&self, product: &Product, replicas: usize) -> anyhow::Result<()> {
        let replicas = format!("--replicas={replicas}");
        let Product {
            namespace, deployment, ..
        } = product;
        let words = ["kubectl", "-n", namespace, "scale", "deployment", deployment, &replicas];
        self.session.must(self.stack(), &words)
    }

    fn replicas(&self, product: &Product) -> anyhow::Result<String> {
        let args = [
            "--namespace",
            product.namespace,
            "get",
            "deployment",
            product.deployment,
        ];
        let replicas = ["--output=jsonpath={.spec.replicas}"];
        self.stack().kubectl(&[&args[..], &replicas].concat())
    }

    /// `kubectl apply` does not change the version that clusterctl plans upgrades from.
    fn record_version(&self, to: Family, product: &Product) -> anyhow::Result<()> {
        let Some(flag) = product.provider else {
            return Ok(());
        };
        let name = format!("{}-metal3", flag.trim_start_matches('-'));
        let version = format!(r#"--patch={{"version":"{}"}}"#, to.version());
        let words = [
            "kubectl",
            "-n",
            product.namespace,
            "patch",
            "providers.clusterctl.cluster.x-k8s.io",
        ];
        let words = [&words[..], &[&name, "--type=merge", &version]].concat();
        self.session.must(self.stack(), &words)
    }

    fn until_gone(&self, product: &Product) -> anyhow::Result<()> {
        until(GONE, &format!("the end of {}", product.deployment), || {
            Ok(list(self.stack(), product.namespace, "pods")?.is_empty().then_some(()))
        })
    }

    pub(super) fn rolled_out(&self) -> anyhow::Result<()> {
        for Product {
            namespace, deployment, ..
        } in products()
        {
            let args = ["rollout", "status", "deployment", deployment, "--timeout=180s"];
            self.stack()
                .kubectl(&[&["--namespace", namespace][..], &args].concat())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_an_unknown_reason_is_an_error() {
        let [conflicts, definition, webhooks] = &PLAIN;
        let table = [
            (conflicts, IPAM, true, "a conflict of the past", Some(false)),
            (conflicts, IPAM, false, "1 conflict: with clusterctl", Some(true)),
            (
                conflicts,
                INFRASTRUCTURE,
                false,
                "the definition is invalid",
                Some(false),
            ),
            (
                definition,
                INFRASTRUCTURE,
                false,
                "the definition is invalid",
                Some(true),
            ),
            (conflicts, IPAM, false, "the definition is invalid", None),
            (webhooks, HOSTS, false, "1 conflict: with clusterctl", None),
            (webhooks, HOSTS, false, "connection refused", None),
        ];
        for (plain, file, succeeded, printed, expected) in table {
            let typed = Typed {
                succeeded,
                printed: printed.to_owned(),
            };
            let is_refused = plain.is_refused(file, &typed).ok();
            assert_eq!(is_refused, expected, "{file} {succeeded}: {printed}");
        }
    }
}
