//! Claims a host and provisions it for the machine.

use std::fmt;

use metal3_api::infrastructure::names::{
    CHOSEN_HOST_ANNOTATION, FAILURE_DOMAIN_LABEL, HOST_ANNOTATION, MACHINE_FINALIZER,
};
use metal3_api::infrastructure::{AddressType, MachineAddress};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::{label, node_reuse_owner};
use metal3_domain::image::{ImageError, ImageField};
use metal3_runtime::plan::Observed;

use super::data::DataState;
use super::owners::{has_owner, remove_owner};
use super::{Decision, Planner, Prerequisites, host_changes};
use crate::data::request;
use crate::diff::changes;
use crate::host_choice::{Choice, HostChooser, Refusals, UnreadableSelector};
use crate::machine::action::{Action, HostChange, Reads};
use crate::machine::conditions::{Data, Labels, Node, Request, Stage};
use crate::machine::facts;

/// The most addresses that the schema allows.
const ADDRESSES: usize = 32;

impl<'a> Planner<'a> {
    /// Chooses a host for a machine without one, and claims it.
    pub(super) fn choose_and_claim(&mut self, prerequisites: Prerequisites<'a>) -> Decision {
        let stage = |message, is_rechecked| Decision::UpdateStatus(Stage::WithoutHost { message, is_rechecked });
        let without = |message| stage(message, false);
        let error = self.validation_error().or_else(|| self.zone_selector_error());
        if let Some(message) = error.or_else(|| self.missing_zone_template()) {
            return without(message);
        }
        if let Some(decision) = self.wait_for_unreadable_host() {
            return decision;
        }
        match self.choose(prerequisites) {
            Ok(Choice::Own(host)) => self.provision_on(host, prerequisites),
            Ok(Choice::Take { host, is_reused, .. }) => match self.wait_for_unreadable_site() {
                Some(decision) => decision,
                None => self.claim_choice(host, is_reused, prerequisites),
            },
            Ok(Choice::None(refusals)) => {
                tracing::debug!(machine = self.name(), hosts = %Detail(&refusals), "no host can be claimed");
                let message = self.with_join_note(refusals.to_string());
                stage(message, refusals.has_undecided())
            }
            Err(error) => without(error.to_string()),
        }
    }

    fn choose(&self, prerequisites: Prerequisites<'a>) -> Result<Choice<'a>, UnreadableSelector> {
        let mut candidate_machine = self.before.clone();
        candidate_machine
            .spec
            .failure_domain
            .clone_from(&prerequisites.owner.spec.failure_domain);
        let owner = node_reuse_owner(prerequisites.owner);
        let chooser = HostChooser::try_new(&candidate_machine, owner.as_deref())?;
        let chooser = chooser
            .with_namesake(self.facts.has_namesake)
            .with_sites(prerequisites.metal3_cluster, self.other_sites(prerequisites));
        let all = || self.facts.hosts.all.iter().map(AsRef::as_ref);
        let is_chosen = |host: &&BareMetalHost| host.metadata.name.as_deref() == facts::chosen(self.before);
        Ok(match chooser.choose(all().filter(is_chosen)) {
            Choice::None(_) => chooser.choose(all()),
            found => found,
        })
    }

    /// Waits when the machine's host may be one that cannot be read.
    fn wait_for_unreadable_host(&self) -> Option<Decision> {
        if !self.rules.respect_unreadable() {
            return None;
        }
        let hosts = &self.facts.hosts;
        match (facts::chosen(self.before), &hosts.named) {
            (Some(host), Observed::Unknown(why)) => {
                Some(self.unreadable(&format!("BareMetalHost {host} cannot be read: {why}; correct it")))
            }
            (Some(_), _) => None,
            // The Go manager may have claimed a host for a machine with the finalizer and without a choice.
            (None, _) => hosts.unreadable.as_ref().filter(|_| self.has_finalizer()).map(|host| {
                self.unreadable(&format!(
                    "BareMetalHost {host} cannot be read and may be the machine's; correct it"
                ))
            }),
        }
    }

    /// Claims a host: first the machine records its choice, then the host gets the consumer, then the machine records
    /// the host.
    fn claim_choice(&mut self, host: &'a BareMetalHost, is_reused: bool, prerequisites: Prerequisites<'a>) -> Decision {
        let is_chosen = host.metadata.name.as_deref() == facts::chosen(self.before) && self.has_finalizer();
        // differs (`machine-choice`): the Go manager claims a host without recording the choice first.
        if self.rules.choose_first() && !is_chosen {
            let domain = prerequisites.owner.spec.failure_domain.clone();
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
        } else if self.rules.confirm_claim() && !self.facts.confirmed {
            return Decision::Read(Reads::Machine);
        }
        self.claim(host, is_reused, prerequisites)
    }

    /// Releases a host that another replica claimed for the machine at the same time and that is not provisioned yet.
    pub(super) fn release_surplus_hosts(&mut self) -> Option<Decision> {
        let own = facts::associated(self.before).filter(|_| self.rules.drop_surplus())?;
        let is_surplus = |host: &&BareMetalHost| {
            let is_idle = !host_changes::is_used(host) && !host.is_paused() && host_changes::is_idle(host);
            is_idle && host.metadata.name.as_deref() != Some(own)
        };
        let surplus: Vec<&BareMetalHost> = self.facts.hosts.claimed().filter(is_surplus).collect();
        if !surplus.is_empty() && !self.facts.confirmed {
            return Some(Decision::Read(Reads::Machine));
        }
        let cluster = self.cluster_name();
        for host in surplus {
            // It would be deleted with this machine, which does not record it.
            if self.disown_surplus(host) {
                continue;
            }
            self.label_secret(host, None);
            let kept = host_changes::kept_before(host);
            self.patch_host(host, HostChange::Release, |host| {
                host_changes::release(host, cluster, kept.as_ref())
            });
        }
        None
    }

    pub(super) fn claim(
        &mut self,
        host: &'a BareMetalHost,
        is_reused: bool,
        prerequisites: Prerequisites<'a>,
    ) -> Decision {
        let data_state = self.data_state(host);
        let (machine, cluster) = (&self.before.metadata, prerequisites.owner.spec.cluster_name.as_str());
        // Provisioning happens in a later reconcile after its own live read: the claim may be written after the machine
        // is deleted, and a host with only a consumer can be released.
        self.patch_host(host, HostChange::Claim, |host| {
            host_changes::claim(host, machine, cluster)
        });
        self.associate(host, prerequisites);
        self.copy_host_status(host);
        self.hosted(is_reused, data_state, Node::NotExpected, Labels::Unchanged)
    }

    /// Provisions the machine's host, or updates it when it is provisioned.
    pub(super) fn provision_on(&mut self, host: &'a BareMetalHost, prerequisites: Prerequisites<'a>) -> Decision {
        let data_state = self.data_state(host);
        let must_provision = !facts::is_provisioned(host) || !self.rules.provision_once();
        let is_complete = data_state.is_complete() || !self.rules.data_first();
        let error = if must_provision { self.validation_error() } else { None };
        if must_provision && is_complete && error.is_none() {
            // Before the machine, whose read confirms the hosts that were observed before it.
            if let Some(reads) = self.unconfirmed_zones(host) {
                return Decision::Read(reads);
            }
            if self.rules.confirm_provision() && !self.facts.confirmed {
                return Decision::Read(Reads::Machine);
            }
            if self.rules.associate_first() {
                self.associate(host, prerequisites);
            }
            let (wanted, status) = (self.machine.spec.clone(), self.machine.status.clone());
            self.patch_host(host, HostChange::Provision, |host| {
                host_changes::provision(host, &wanted, &status)
            });
        } else {
            self.update_host(host);
        }
        self.associate(host, prerequisites);
        self.copy_host_status(host);
        if let Some(error) = error {
            let request = Request::HostNotWritten(error);
            return Decision::UpdateStatus(Stage::Hosted {
                is_reused: false,
                request,
                data: data_state.to_condition(),
                node: Node::NotExpected,
                labels: Labels::Unchanged,
            });
        }
        // The claim may have been the last write of an earlier process.
        let is_reused = host_changes::kept_before(host).is_some();
        let node = match self.node(host, prerequisites) {
            Ok(node) => node,
            Err(decision) => return decision,
        };
        match self.labels(&node, host, prerequisites) {
            Ok(labels) => self.hosted(is_reused, data_state, node, labels),
            Err(decision) => decision,
        }
    }

    /// Writes what may change while the host is provisioned. The owner that a Go manager wrote is removed by the same write, unless
    /// that was refused: a host at rest is then written once after a switch.
    fn update_host(&mut self, host: &BareMetalHost) {
        let (wanted, machine) = (self.machine.spec.clone(), &self.before.metadata);
        let mut updated = host.clone();
        host_changes::update(&mut updated, &wanted);
        let is_disowned =
            changes(host, &updated).main.is_some() && has_owner(host, machine) && self.facts.owner_refused.is_none();
        let change = if is_disowned {
            HostChange::Disown
        } else {
            HostChange::Update
        };
        self.patch_host(host, change, |host| {
            host_changes::update(host, &wanted);
            if is_disowned {
                remove_owner(host, machine);
            }
        });
    }

    fn hosted(&mut self, is_reused: bool, data_state: DataState, node: Node, labels: Labels) -> Decision {
        let request = match &data_state {
            DataState::Refused(message) => Request::Failed(message.clone()),
            DataState::Missing | DataState::Waiting(_) | DataState::Rendered | DataState::External => Request::Made,
        };
        if matches!(data_state, DataState::Missing)
            && let Ok(Some(claim)) = request::claim_of(&self.machine)
        {
            self.actions.push(Action::CreateClaim(Box::new(claim)));
        }
        let data: Data = data_state.to_condition();
        Decision::UpdateStatus(Stage::Hosted {
            is_reused,
            request,
            data,
            node,
            labels,
        })
    }

    /// Records the host, and the failure domain of the owner, in the machine.
    fn associate(&mut self, host: &BareMetalHost, prerequisites: Prerequisites<'a>) {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        // The machine as changed so far: a reconcile that provisions calls this twice.
        if facts::associated(&self.machine) != Some(name) {
            self.label_secret(host, Some(&prerequisites.owner.spec.cluster_name));
        }
        let (namespace, domain) = (self.namespace(), prerequisites.owner.spec.failure_domain.clone());
        // A name that cannot be used is not fixed: the user corrects it in the zone.
        let is_usable = self.zone_template_error().is_none() && self.missing_zone_template().is_none();
        let is_usable = is_usable && self.left_domain(host).is_none();
        let zone_template = self.zone_template(host).filter(|_| is_usable);
        let site = self.site_by_domain(prerequisites);
        self.patch_machine(|machine| {
            let annotations = machine.metadata.annotations.get_or_insert_default();
            annotations.insert(HOST_ANNOTATION.to_owned(), format!("{namespace}/{name}"));
            annotations.remove(CHOSEN_HOST_ANNOTATION);
            machine.spec.failure_domain = domain;
            machine.spec.metal3_cluster_ref = machine.spec.metal3_cluster_ref.take().or(site);
            // From here on a change of the zone applies to other machines only, as a change of a template does.
            machine.spec.data_template = machine.spec.data_template.take().or(zone_template);
            if let Some(template) = &mut machine.spec.data_template
                && template.namespace.as_deref().is_none_or(str::is_empty)
            {
                template.namespace = Some(namespace.to_owned());
            }
        });
    }

    /// Labels the Secret with the host's credentials, so that `clusterctl move` includes it.
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
        let finalizers = self.before.metadata.finalizers.iter().flatten();
        finalizers.into_iter().any(|name| name == MACHINE_FINALIZER)
    }

    /// Copies addresses and failure domain of the host to the machine's status.
    fn copy_host_status(&mut self, host: &BareMetalHost) {
        self.machine.status.addresses = addresses(host);
        let zones = self.zones();
        let zone = zones.of_host(host, self.domain()).map(|zone| zone.name.as_str());
        let labelled = || label(&host.metadata, FAILURE_DOMAIN_LABEL).filter(|domain| !domain.is_empty());
        self.machine.status.failure_domain = zone.or_else(labelled).map(ToOwned::to_owned);
    }

    /// Why the machine's spec cannot be provisioned: the field and the remedy.
    pub(super) fn validation_error(&self) -> Option<String> {
        let machine = self.before;
        let image = machine.spec.image_errors().first().map(image_error);
        let template = machine.spec.data_template.as_ref();
        let unnamed = template.filter(|template| template.name.as_deref().is_none_or(str::is_empty));
        let unnamed = || unnamed.map(|_| "spec.dataTemplate.name: it is missing; name the template".to_owned());
        let other_namespace = || request::claim_of(machine).err().map(|error| error.to_string());
        image
            .or_else(unnamed)
            .or_else(other_namespace)
            .or_else(|| self.zone_template_error())
    }
}

/// Formats the refusals only when the log level is enabled.
struct Detail<'a>(&'a Refusals<'a>);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.in_detail())
    }
}

fn image_error(fault: &ImageError) -> String {
    let field = match fault.field() {
        ImageField::Image => "spec.image",
        ImageField::Url => "spec.image.url",
        ImageField::Checksum => "spec.image.checksum",
        ImageField::ChecksumType => "spec.image.checksumType",
        ImageField::DiskFormat => "spec.image.diskFormat",
    };
    format!("{field}: {fault}")
}

/// The addresses that inspection found, without duplicates.
// differs (`machine-addresses`): the Go manager repeats them, and may exceed the schema's limit.
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
