//! The commands of a switch, as a user types them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::plain::Plain;
use super::products::{Family, IPAM, Product, products};
use super::session::Session;
use super::upstream::Upstream;
use crate::claims::stack::Stack;
use crate::lifecycle::env::TestEnv;
use crate::lifecycle::{install, upgrade_plan};
use crate::products::load::{list, name};
use crate::products::machines;
use crate::products::machines::cluster::{Leader, leader, working};
use crate::products::written::FIRST;
use crate::wait::until;

/// Pods end within their grace period.
const GONE: Duration = Duration::from_secs(120);

/// A new leader waits for the lease of a killed one, and processes that ended are started again after a pause.
const LEADS: Duration = Duration::from_secs(120);

/// How to switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    /// Product by product: scale to 0, and apply.
    Scale,
    /// `clusterctl upgrade apply`, and apply for the hosts.
    Upgrade,
    /// As `scale`; the leader of each product is killed before it is stopped, and each new one once it leads.
    Killed,
}

impl Way {
    /// The value of the flag.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scale => "scale",
            Self::Upgrade => "upgrade",
            Self::Killed => "killed",
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Scale => "product by product, scaled to 0 and applied",
            Self::Upgrade => "by clusterctl upgrade",
            Self::Killed => "product by product, each old and new leader killed by SIGKILL",
        }
    }
}

pub(super) struct Installer<'a> {
    pub(super) env: &'a TestEnv<'a>,
    pub(super) upstream: &'a Upstream,
    pub(super) session: &'a Session,
    /// This program, for its commands.
    pub(super) program: &'a Path,
}

impl Installer<'_> {
    pub(super) fn stack(&self) -> &Stack {
        self.env.stack
    }

    pub(super) fn products(&self) -> [Product; 3] {
        products(&self.upstream.release)
    }

    fn version(&self, of: Family) -> String {
        match of {
            Family::Go => self.upstream.release.version(),
            Family::Ours => FIRST.to_owned(),
        }
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
            Family::Ours => {
                let components = install::hosts_components(self.env, FIRST)?;
                let components = self.upstream.with_its_agent(&components, self.env.fleet)?;
                self.upstream.with_its_claims(components)?
            }
        };
        let is_bundled = family == Family::Go && !self.upstream.release.has_ipam_provider();
        for product in self.products() {
            let text = match product.provider {
                None => hosts.clone(),
                Some(_) if is_bundled && product.file == IPAM => self.upstream.addresses(stack)?,
                Some(flag) => {
                    let version = format!("metal3:{}", self.version(family));
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
        let [hosts, ..] = self.products();
        self.apply(Family::Go, &hosts, false)?;
        let providers = "--core cluster-api --bootstrap kubeadm --control-plane kubeadm --infrastructure metal3";
        if self.upstream.release.has_ipam_provider() {
            machines::init(stack, &format!("{providers} --ipam metal3"))?;
        } else {
            machines::init(stack, providers)?;
        }
        self.rolled_out(Family::Go)
    }

    /// Switches to these managers.
    pub(super) fn switch(&self, to: Family, way: Way) -> anyhow::Result<()> {
        let all = self.products();
        let hands_back = to == Family::Go && self.upstream.release.needs_hand_back();
        if hands_back {
            self.store_as_older()?;
            for product in &all {
                self.stop(to.other(), product)?;
            }
        }
        self.before_apply(to)?;
        if hands_back {
            self.hand_back()?;
        }
        match way {
            Way::Scale | Way::Killed => {
                for product in all {
                    if way == Way::Killed && !hands_back {
                        self.kill_leader(to.other(), &product)?;
                    }
                    if !hands_back {
                        self.stop(to.other(), &product)?;
                    }
                    self.apply(to, &product, true)?;
                    // Where the file does not contain the replicas, they stay as they were scaled.
                    if self.replicas(to, &product)? == "0" {
                        self.scale(to, &product, 1)?;
                    }
                    self.record_version(to, &product)?;
                    if way == Way::Killed {
                        self.kill_leader(to, &product)?;
                    }
                }
            }
            Way::Upgrade => {
                let [hosts, ..] = all;
                self.apply(to, &hosts, true)?;
                if to == Family::Ours {
                    let plan = self.session.type_in(self.stack(), &["clusterctl", "upgrade", "plan"])?;
                    upgrade_plan::offers(&plan.printed, &self.version(to))?;
                }
                let version = self.version(to);
                let infrastructure = format!("capm3-system/metal3:{version}");
                let addresses = format!("metal3-ipam-system/metal3:{version}");
                let upgrade = ["clusterctl", "upgrade", "apply", "--infrastructure", &infrastructure];
                let upgrade = [&upgrade[..], &["--ipam", &addresses, "--wait-providers"]].concat();
                self.session.must(self.stack(), &upgrade)?;
            }
        }
        if hands_back {
            self.restart_watchers()?;
        }
        self.rolled_out(to)
    }

    fn stop(&self, family: Family, product: &Product) -> anyhow::Result<()> {
        self.scale(family, product, 0)?;
        self.until_gone(family, product)
    }

    /// Tries a plain command for the files of some products, without a change.
    pub(super) fn is_refused(&self, to: Family, plain: &Plain) -> anyhow::Result<bool> {
        let mut is_refused = false;
        let products = self.products();
        for product in products.iter().filter(|product| plain.files.contains(&product.file)) {
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
        let kind = "validatingwebhookconfiguration";
        let delete = ["kubectl", "delete", "--ignore-not-found", kind, WEBHOOKS];
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

    fn scale(&self, family: Family, product: &Product, replicas: usize) -> anyhow::Result<()> {
        let replicas = format!("--replicas={replicas}");
        let (namespace, deployment) = (product.namespace(family), product.deployment);
        let words = ["kubectl", "-n", namespace, "scale", "deployment", deployment, &replicas];
        self.session.must(self.stack(), &words)
    }

    fn replicas(&self, family: Family, product: &Product) -> anyhow::Result<String> {
        let args = [
            "--namespace",
            product.namespace(family),
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
        if product.file == IPAM && !self.upstream.release.has_ipam_provider() {
            return Ok(());
        }
        let name = format!("{}-metal3", flag.trim_start_matches('-'));
        let version = format!(r#"--patch={{"version":"{}"}}"#, self.version(to));
        let words = [
            "kubectl",
            "-n",
            product.namespace(to),
            "patch",
            "providers.clusterctl.cluster.x-k8s.io",
        ];
        let words = [&words[..], &[&name, "--type=merge", &version]].concat();
        self.session.must(self.stack(), &words)
    }

    /// `kill -9` of the process that leads, while it works: the lease stays until it expires. Without a lease it is the one that is
    /// ready.
    pub(super) fn kill_leader(&self, family: Family, product: &Product) -> anyhow::Result<()> {
        let (stack, what) = (self.stack(), format!("a leader of {}", product.deployment));
        until(LEADS, &what, || {
            let namespace = product.namespace(family);
            let Leader { pod, process, .. } = match product.elects(family) {
                true => leader(stack, namespace, product.lease)?,
                false => working(stack, namespace, product.deployment)?,
            };
            let Some(process) = process.filter(|_| pod.starts_with(product.deployment)) else {
                return Ok(None);
            };
            stack.run("kill", &["-9", &process], None).map(Some)
        })?;
        self.session
            .note(&format!("kill -9 of the leader of {}", product.deployment));
        Ok(())
    }

    fn until_gone(&self, family: Family, product: &Product) -> anyhow::Result<()> {
        let prefix = format!("{}-", product.deployment);
        until(GONE, &format!("the end of {}", product.deployment), || {
            let pods = list(self.stack(), product.namespace(family), "pods")?;
            Ok((!pods.iter().any(|pod| name(pod).starts_with(&prefix))).then_some(()))
        })
    }

    pub(super) fn rolled_out(&self, family: Family) -> anyhow::Result<()> {
        for product in self.products() {
            let args = ["rollout", "status", "deployment", product.deployment, "--timeout=180s"];
            self.stack()
                .kubectl(&[&["--namespace", product.namespace(family)][..], &args].concat())?;
        }
        Ok(())
    }
}
