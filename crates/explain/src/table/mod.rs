//! The table of reasons: what each reason of a condition, an Event or a wait means, who has to act, and what to do.
//!
//! A reason is looked up in the area of its object, then among those that all kinds share. A test of the manager compares
//! each area with the reasons that the products declare, in both directions, and `docs/runbooks` is generated from here.

mod addresses;
mod agent_images;
mod claims;
mod cleaning;
mod clusters;
mod components;
mod data;
mod data_images;
mod hosts;
mod ironics;
mod machines;
mod process;
mod remediation;
mod row;
mod services;
mod settings;
mod shared;
mod subscriptions;
mod switches;
mod templates;
mod unserved;

use metal3_api::metal3::v1alpha1::ErrorType;

pub use row::{Actor, Row, Severity};

/// A group of reasons: one page of the runbooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Of more than one kind.
    Shared,
    /// Metal3Cluster.
    Clusters,
    /// Metal3Machine.
    Machines,
    /// Metal3MachineTemplate.
    Templates,
    /// Metal3DataTemplate, Metal3DataClaim and Metal3Data.
    Data,
    /// Metal3Remediation.
    Remediation,
    /// BareMetalHost.
    Hosts,
    /// HostFirmwareSettings.
    Settings,
    /// HostFirmwareComponents.
    Components,
    /// PreprovisioningImage.
    AgentImages,
    /// BMCEventSubscription.
    Subscriptions,
    /// DataImage.
    DataImages,
    /// BareMetalSwitch.
    Switches,
    /// HostClaim.
    Claims,
    /// The kinds of hosts that have no controller.
    Unserved,
    /// IPPool, IPClaim and IPAddress.
    Addresses,
    /// The program.
    Process,
}

impl Area {
    /// All areas, in the order of the index.
    pub const ALL: [Self; 17] = [
        Self::Shared,
        Self::Clusters,
        Self::Machines,
        Self::Templates,
        Self::Data,
        Self::Remediation,
        Self::Hosts,
        Self::Settings,
        Self::Components,
        Self::AgentImages,
        Self::Subscriptions,
        Self::DataImages,
        Self::Switches,
        Self::Claims,
        Self::Unserved,
        Self::Addresses,
        Self::Process,
    ];

    /// The rows, in the order of the page.
    #[must_use]
    pub const fn rows(self) -> &'static [Row] {
        match self {
            Self::Shared => shared::ROWS,
            Self::Clusters => clusters::ROWS,
            Self::Machines => machines::ROWS,
            Self::Templates => templates::ROWS,
            Self::Data => data::ROWS,
            Self::Remediation => remediation::ROWS,
            Self::Hosts => hosts::ROWS,
            Self::Settings => settings::ROWS,
            Self::Components => components::ROWS,
            Self::AgentImages => agent_images::ROWS,
            Self::Subscriptions => subscriptions::ROWS,
            Self::DataImages => data_images::ROWS,
            Self::Switches => switches::ROWS,
            Self::Claims => claims::ROWS,
            Self::Unserved => unserved::ROWS,
            Self::Addresses => addresses::ROWS,
            Self::Process => process::ROWS,
        }
    }

    /// The name of the page, without its ending.
    #[must_use]
    pub const fn page(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Clusters => "clusters",
            Self::Machines => "machines",
            Self::Templates => "machine-templates",
            Self::Data => "data",
            Self::Remediation => "remediation",
            Self::Hosts => "hosts",
            Self::Settings => "firmware-settings",
            Self::Components => "firmware-components",
            Self::AgentImages => "agent-images",
            Self::Subscriptions => "event-subscriptions",
            Self::DataImages => "data-images",
            Self::Switches => "switches",
            Self::Claims => "host-claims",
            Self::Unserved => "kinds-without-controller",
            Self::Addresses => "addresses",
            Self::Process => "process",
        }
    }

    /// The kinds whose reasons are here, for the title of the page.
    #[must_use]
    pub const fn kinds(self) -> &'static str {
        match self {
            Self::Shared => "All kinds",
            Self::Clusters => "Metal3Cluster",
            Self::Machines => "Metal3Machine",
            Self::Templates => "Metal3MachineTemplate",
            Self::Data => "Metal3DataTemplate, Metal3DataClaim, Metal3Data",
            Self::Remediation => "Metal3Remediation",
            Self::Hosts => "BareMetalHost",
            Self::Settings => "HostFirmwareSettings",
            Self::Components => "HostFirmwareComponents",
            Self::AgentImages => "PreprovisioningImage",
            Self::Subscriptions => "BMCEventSubscription",
            Self::DataImages => "DataImage",
            Self::Switches => "BareMetalSwitch",
            Self::Claims => "HostClaim",
            Self::Unserved => "PreprovisioningImage, and other kinds without a controller",
            Self::Addresses => "IPPool, IPClaim, IPAddress, IPAddressClaim",
            Self::Process => "The program",
        }
    }

    /// The row of a reason of this area.
    #[must_use]
    pub fn find(self, reason: &str) -> Option<Entry> {
        [self, Self::Shared].into_iter().find_map(|area| {
            let row = area.rows().iter().find(|row| row.reason == reason)?;
            Some(Entry { area, row })
        })
    }
}

/// A row with its place in the runbooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The page.
    pub area: Area,
    /// The row.
    pub row: &'static Row,
}

impl Entry {
    /// Its section of the runbooks, below the root of the repository.
    #[must_use]
    pub fn runbook(self) -> String {
        format!(
            "docs/runbooks/{}.md#{}",
            self.area.page(),
            self.row.reason.to_ascii_lowercase()
        )
    }
}

/// The reason of a BareMetalHost with an error of this type, as in its Events.
#[must_use]
pub const fn reason_of_error(error: ErrorType) -> &'static str {
    match error {
        ErrorType::ProvisionedRegistration => "ProvisionedRegistrationError",
        ErrorType::Registration => "RegistrationError",
        ErrorType::Inspection => "InspectionError",
        ErrorType::Preparation => "PreparationError",
        ErrorType::Provisioning => "ProvisioningError",
        ErrorType::PowerManagement => "PowerManagementError",
        ErrorType::Servicing => "ServicingError",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reason_has_one_row_in_its_area_and_none_that_hides_a_shared_one_by_accident() {
        for area in Area::ALL {
            let mut seen = BTreeSet::new();
            for row in area.rows() {
                assert!(seen.insert(row.reason), "{area:?}: {} twice", row.reason);
            }
        }
    }

    #[test]
    fn texts_are_sentences_without_a_final_stop_in_titles_and_cures_say_what_to_do() {
        for row in Area::ALL.iter().flat_map(|area| area.rows()) {
            let Row {
                reason,
                title,
                meaning,
                cure,
                ..
            } = row;
            assert!(!title.is_empty() && !title.ends_with('.'), "{reason}: title");
            assert!(meaning.ends_with('.'), "{reason}: meaning");
            assert!(title.len() <= 70, "{reason}: a title has at most 70 bytes");
            let is_done = row.actor == Actor::Nothing;
            assert_eq!(is_done, cure.is_empty(), "{reason}: only what is done needs no cure");
            assert!(is_done || cure.ends_with('.'), "{reason}: cure");
            assert_eq!(is_done, row.severity == Severity::Normal, "{reason}: severity");
        }
    }

    #[test]
    fn reason_is_found_in_its_area_first_then_among_the_shared_ones() {
        let page = |area: Area, reason| area.find(reason).map(Entry::runbook);
        assert_eq!(
            page(Area::Addresses, "PoolExhausted").as_deref(),
            Some("docs/runbooks/addresses.md#poolexhausted")
        );
        assert_eq!(
            page(Area::Machines, "Paused").as_deref(),
            Some("docs/runbooks/shared.md#paused")
        );
        assert_eq!(page(Area::Machines, "PoolExhausted"), None);
    }

    /// In its first two minutes an outage of Ironic is not reported, so the step of a host seems to last.
    #[test]
    fn cure_of_a_step_that_lasts_names_ironic() {
        for reason in [
            "Registering",
            "Inspecting",
            "Preparing",
            "Provisioning",
            "Deprovisioning",
        ] {
            let cure = Area::Hosts.find(reason).map_or("", |entry| entry.row.cure);
            assert!(
                cure.contains("Ironic responds") || cure.contains("Ironic does not respond"),
                "{reason}: {cure}"
            );
        }
    }

    /// Words that would do harm without the others.
    #[test]
    fn cure_that_may_do_harm_says_so() {
        let cure = |area: Area, reason| area.find(reason).map_or("", |entry| entry.row.cure);
        let finalizers = cure(Area::Unserved, "OtherFinalizers");
        assert!(
            !finalizers.is_empty() && !finalizers.contains("by hand"),
            "{finalizers}"
        );
        for (area, reason) in [
            (Area::Remediation, "PowerOffDisabled"),
            (Area::Data, "ClaimLives"),
            (Area::Hosts, "DeletionDelayed"),
        ] {
            let cure = cure(area, reason);
            assert!(cure.contains("deprovision"), "{reason}: {cure}");
        }
    }

    /// A move pauses, and without the pause two clusters manage one machine.
    #[test]
    fn cure_of_a_pause_names_a_move() {
        let rows = Area::ALL.iter().flat_map(|area| area.rows());
        let paused = rows.filter(|row| row.reason.ends_with("Paused") && row.actor == Actor::User);
        let cures: Vec<&str> = paused.map(|row| row.cure).collect();
        assert!(cures.len() >= 4, "{cures:?}");
        assert!(cures.iter().all(|cure| cure.contains("clusterctl move")), "{cures:?}");
    }

    #[test]
    fn each_error_type_of_a_host_has_a_row() {
        for error in ErrorType::ALL {
            let entry = Area::Hosts.find(reason_of_error(error));
            assert!(
                entry.is_some_and(|entry| entry.row.severity == Severity::Error),
                "{error:?}"
            );
        }
    }
}
