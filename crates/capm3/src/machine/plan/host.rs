//! Taking a host, and running the machine on it.

use std::fmt;

use metal3_api::infrastructure::names::{
    CHOSEN_HOST_ANNOTATION, FAILURE_DOMAIN_LABEL, HOST_ANNOTATION, MACHINE_FINALIZER,
};
use metal3_api::infrastructure::v1beta2::{FailureDomainPolicy, Metal3Machine};
use metal3_api::infrastructure::{AddressType, MachineAddress};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::Sight;
use metal3_capi::owner::{label, node_reuse_owner};
use metal3_domain::image::{ImageFault, ImageField};

use super::data::Held;
use super::{Pass, Surroundings, Verdict, documents};
use crate::data::request;
use crate::host_choice::{Choice, Refusals, Seeker};
use crate::machine::action::{Action, Deed};
use crate::machine::conditions::{Data, Node, Request, Stage};
use crate::machine::facts;

/// Most addresses that a machine may state.
const ADDRESSES: usize = 32;

/// What came of the choice.
enum Chosen<'a> {
    /// The machine has this host already.
    Own(&'a BareMetalHost),
    /// This one is to be taken.
    Free { host: &'a BareMetalHost, is_kept: bool },
}

impl<'a> Pass<'a> {
    /// Chooses a host for a machine without one, and takes it.
    pub(super) fn take_a_host(&mut self, around: Surroundings<'a>) -> Verdict {
        let without = |message| Verdict::Say(Stage::WithoutHost { message });
        if let Some(message) = self.unfit() {
            return without(message);
        }
        if let Some(verdict) = self.hidden_host() {
            return verdict;
        }
        match self.choose(around) {
            Ok(Chosen::Own(host)) => self.run_on(host, around),
            Ok(Chosen::Free { host, is_kept }) => self.take(host, is_kept, around),
            Err(message) => without(message),
        }
    }

    /// The host to take, or why there is none.
    fn choose(&self, around: Surroundings<'a>) -> Result<Chosen<'a>, String> {
        let mut seeking = self.facts.machine.clone();
        seeking
            .spec
            .failure_domain
            .clone_from(&around.owner.spec.failure_domain);
        let owner = node_reuse_owner(around.owner);
        let seeker = Seeker::try_new(&seeking, owner.as_deref()).map_err(|error| error.to_string())?;
        let is_strict = around.metal3_cluster.spec.failure_domain_policy == Some(FailureDomainPolicy::Required);
        let domain = seeking.spec.failure_domain.as_deref();
        let domain = domain.filter(|domain| is_strict && !domain.is_empty());
        let is_near = |host: &&BareMetalHost| domain.is_none() || label(&host.metadata, FAILURE_DOMAIN_LABEL) == domain;
        let all = || self.facts.hosts.all.iter().copied().filter(is_near);
        let is_chosen = |host: &&BareMetalHost| host.metadata.name.as_deref() == facts::chosen(self.facts.machine);
        let choice = match seeker.choose(all().filter(is_chosen)) {
            Choice::None(_) => seeker.choose(all()),
            found => found,
        };
        let (found, is_kept) = match choice {
            Choice::Own(host) => (host, None),
            Choice::Take { host, is_kept, .. } => (host, Some(is_kept)),
            Choice::None(refusals) => {
                tracing::debug!(machine = self.name(), hosts = %Detail(&refusals), "no host can be taken");
                return Err(domain.map_or_else(
                    || refusals.to_string(),
                    |domain| format!("in failure domain {domain}, which is required: {refusals}"),
                ));
            }
        };
        let host = self
            .facts
            .hosts
            .all
            .iter()
            .copied()
            .find(|host| std::ptr::eq(*host, found));
        let host = host.ok_or_else(|| "the host that was chosen is none of those seen".to_owned())?;
        Ok(is_kept.map_or(Chosen::Own(host), |is_kept| Chosen::Free { host, is_kept }))
    }

    /// Whether the machine's host may be one that cannot be read.
    fn hidden_host(&self) -> Option<Verdict> {
        if !self.rules.heed_unknown {
            return None;
        }
        let hosts = &self.facts.hosts;
        match (facts::chosen(self.facts.machine), hosts.named) {
            (Some(host), Sight::Unknown(why)) => {
                Some(self.unclear(&format!("BareMetalHost {host} cannot be read: {why}; correct it")))
            }
            (Some(_), _) => None,
            // A machine with our finalizer and no choice may have been given a host by the Go manager.
            (None, _) => hosts.unreadable.filter(|_| self.has_finalizer()).map(|host| {
                self.unclear(&format!(
                    "BareMetalHost {host} cannot be read and may be the machine's; correct it"
                ))
            }),
        }
    }

    /// Takes a host: first the machine says which, then the host gets its consumer, then the machine says that it has it.
    fn take(&mut self, host: &'a BareMetalHost, is_kept: bool, around: Surroundings<'a>) -> Verdict {
        let is_chosen = host.metadata.name.as_deref() == facts::chosen(self.facts.machine) && self.has_finalizer();
        // differs (`machine-choice`): the Go manager takes a host unannounced.
        if self.rules.choose_first && !is_chosen {
            let domain = around.owner.spec.failure_domain.clone();
            self.patch_machine(|machine| {
                let finalizers = machine.metadata.finalizers.get_or_insert_default();
                if !finalizers.iter().any(|name| name == MACHINE_FINALIZER) {
                    finalizers.push(MACHINE_FINALIZER.to_owned());
                }
                let annotations = machine.metadata.annotations.get_or_insert_default();
                let name = host.metadata.name.clone().unwrap_or_default();
                annotations.insert(CHOSEN_HOST_ANNOTATION.to_owned(), name);
                machine.spec.failure_domain = domain;
            });
        } else if self.rules.confirm_claim && !self.facts.confirmed {
            return Verdict::Confirm;
        }
        self.claim(host, is_kept, around)
    }

    /// Gives back what the machine does not need: a host that another replica took for it at the same time, and that was
    /// told nothing yet.
    pub(super) fn give_back_surplus(&mut self) -> Option<Verdict> {
        let own = facts::associated(self.facts.machine).filter(|_| self.rules.drop_surplus)?;
        let is_surplus = |host: &&&BareMetalHost| {
            let is_idle = !documents::is_used(host) && !host.is_paused() && documents::is_at_rest(host);
            is_idle && host.metadata.name.as_deref() != Some(own)
        };
        let surplus: Vec<&BareMetalHost> = self.facts.hosts.claimed.iter().filter(is_surplus).copied().collect();
        if !surplus.is_empty() && !self.facts.confirmed {
            return Some(Verdict::Confirm);
        }
        let cluster = self.cluster_name();
        for host in surplus {
            self.label_secret(host, None);
            self.patch_host(host, Deed::Release, |host| documents::release(host, cluster));
        }
        None
    }

    /// Takes the host again that lost its consumer although the machine says it has it.
    pub(super) fn take_again(&mut self, host: &'a BareMetalHost, around: Surroundings<'a>) -> Verdict {
        if self.rules.confirm_claim && !self.facts.confirmed {
            return Verdict::Confirm;
        }
        self.claim(host, false, around)
    }

    fn claim(&mut self, host: &'a BareMetalHost, is_kept: bool, around: Surroundings<'a>) -> Verdict {
        let held = self.data(host);
        let (machine, cluster) = (&self.facts.machine.metadata, around.owner.spec.cluster_name.as_str());
        // What it is to run it is told in another pass, behind a live read of its own: a claim may arrive after the
        // machine has gone, and what only has a consumer can be given back.
        self.patch_host(host, Deed::Claim, |host| documents::claim(host, machine, cluster));
        self.associate(host, around);
        self.observe(host);
        self.hosted(is_kept, held, Node::NotExpected)
    }

    /// Runs the machine on the host that it has.
    pub(super) fn run_on(&mut self, host: &'a BareMetalHost, around: Surroundings<'a>) -> Verdict {
        let held = self.data(host);
        let must_provision = !documents::runs(host) || !self.rules.provision_once;
        let is_complete = held.is_complete() || !self.rules.data_first;
        let flaw = if must_provision { self.unfit() } else { None };
        if must_provision && is_complete && flaw.is_none() {
            if self.rules.confirm_provision && !self.facts.confirmed {
                return Verdict::Confirm;
            }
            if self.rules.associate_first {
                self.associate(host, around);
            }
            let (wanted, status) = (self.machine.spec.clone(), self.machine.status.clone());
            self.patch_host(host, Deed::Provision, |host| {
                documents::provision(host, &wanted, &status)
            });
        } else {
            let wanted = self.machine.spec.clone();
            self.patch_host(host, Deed::Keep, |host| documents::keep(host, &wanted));
        }
        self.associate(host, around);
        self.observe(host);
        if let Some(flaw) = flaw {
            let request = Request::HostNotWritten(flaw);
            return Verdict::Say(Stage::Hosted {
                is_kept: false,
                request,
                data: held.said(),
                node: Node::NotExpected,
            });
        }
        let node = self.node(host, around);
        self.hosted(false, held, node)
    }

    fn hosted(&mut self, is_kept: bool, held: Held, node: Node) -> Verdict {
        let request = match &held {
            Held::Refused(message) => Request::Failed(message.clone()),
            Held::Missing | Held::Waiting(_) | Held::Rendered | Held::External => Request::Made,
        };
        if matches!(held, Held::Missing)
            && let Ok(Some(claim)) = request::claim_of(&self.machine)
        {
            self.actions.push(Action::CreateClaim(Box::new(claim)));
        }
        let data: Data = held.said();
        Verdict::Say(Stage::Hosted {
            is_kept,
            request,
            data,
            node,
        })
    }

    /// Lets the machine say that it has the host, and what follows from its Machine.
    fn associate(&mut self, host: &BareMetalHost, around: Surroundings<'a>) {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        // As the writes so far leave it: this is asked twice in a pass that provisions.
        if facts::associated(&self.machine) != Some(name) {
            self.label_secret(host, Some(&around.owner.spec.cluster_name));
        }
        let (namespace, domain) = (self.namespace(), around.owner.spec.failure_domain.clone());
        self.patch_machine(|machine| {
            let annotations = machine.metadata.annotations.get_or_insert_default();
            annotations.insert(HOST_ANNOTATION.to_owned(), format!("{namespace}/{name}"));
            annotations.remove(CHOSEN_HOST_ANNOTATION);
            machine.spec.failure_domain = domain;
            if let Some(template) = &mut machine.spec.data_template
                && template.namespace.as_deref().is_none_or(str::is_empty)
            {
                template.namespace = Some(namespace.to_owned());
            }
        });
    }

    /// Lets the Secret of the host's credentials move with the Cluster.
    pub(super) fn label_secret(&mut self, host: &BareMetalHost, cluster: Option<&str>) {
        let secret = host.spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str());
        if let Some(secret) = secret.filter(|secret| !secret.is_empty()) {
            self.actions.push(Action::LabelSecret {
                secret: secret.to_owned(),
                cluster: cluster.map(ToOwned::to_owned),
            });
        }
    }

    pub(super) fn has_finalizer(&self) -> bool {
        let finalizers = self.facts.machine.metadata.finalizers.iter().flatten();
        finalizers.into_iter().any(|name| name == MACHINE_FINALIZER)
    }

    /// What of the host the machine's status shows.
    fn observe(&mut self, host: &BareMetalHost) {
        self.machine.status.addresses = addresses(host);
        self.machine.status.failure_domain = label(&host.metadata, FAILURE_DOMAIN_LABEL)
            .filter(|domain| !domain.is_empty())
            .map(ToOwned::to_owned);
    }

    /// Why no host can be told to run this machine, by field and with the cure.
    pub(super) fn unfit(&self) -> Option<String> {
        let machine: &Metal3Machine = self.facts.machine;
        let image = machine.spec.image_faults().first().map(image_flaw);
        let template = machine.spec.data_template.as_ref();
        let nameless = template.filter(|template| template.name.as_deref().is_none_or(str::is_empty));
        let nameless = || nameless.map(|_| "spec.dataTemplate.name: it is missing; name the template".to_owned());
        let elsewhere = || request::claim_of(machine).err().map(|error| error.to_string());
        image.or_else(nameless).or_else(elsewhere)
    }
}

/// Counted and named only where somebody reads it.
struct Detail<'a>(&'a Refusals<'a>);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.in_detail())
    }
}

fn image_flaw(fault: &ImageFault) -> String {
    let field = match fault.field() {
        ImageField::Image => "spec.image",
        ImageField::Url => "spec.image.url",
        ImageField::Checksum => "spec.image.checksum",
        ImageField::ChecksumType => "spec.image.checksumType",
        ImageField::DiskFormat => "spec.image.diskFormat",
    };
    format!("{field}: {fault}")
}

/// The addresses that inspection found, each once.
// differs (`machine-addresses`): the Go manager repeats them, and may state more than the schema takes.
fn addresses(host: &BareMetalHost) -> Vec<MachineAddress> {
    let Some(hardware) = &host.status.hardware else {
        return Vec::new();
    };
    let address = |type_, address: &String| MachineAddress {
        type_,
        address: address.clone(),
    };
    let of_nics = hardware.nics.iter().filter_map(|nic| nic.ip.as_ref());
    let hostname = hardware.hostname.iter().filter(|name| !name.is_empty());
    let names =
        hostname.flat_map(|name| [AddressType::Hostname, AddressType::InternalDNS].map(|kind| address(kind, name)));
    let mut found: Vec<MachineAddress> = Vec::new();
    let ips = of_nics
        .filter(|ip| !ip.is_empty())
        .map(|ip| address(AddressType::InternalIP, ip));
    for one in ips {
        if found.len() < ADDRESSES.saturating_sub(2) && !found.contains(&one) {
            found.push(one);
        }
    }
    found.extend(names);
    found
}
