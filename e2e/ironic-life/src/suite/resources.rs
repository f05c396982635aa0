//! The resources that Ironic's `redfish` hardware type reads, compared with the profile.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{
    claim::Claim,
    service::{Service, addresses, link, number, same, text},
};

const ONE_TEMPLATE: &str = "which fills one template for every machine";

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim::both("the list of systems contains the machine and counts its members", |s| {
            Box::pin(listed(s))
        }),
        Claim::both("a system is identified by its UUID", |s| Box::pin(identified(s))),
        Claim::both("a system has power state and health in the standard's values", |s| {
            Box::pin(state_in_words(s))
        }),
        Claim::both("memory is the profile's", |s| Box::pin(memory(s))),
        Claim::both("processors are as many as the profile has sockets", |s| {
            Box::pin(sockets(s))
        }),
        Claim::both("each processor has model, architecture, cores and threads", |s| {
            Box::pin(processors(s))
        }),
        Claim::both("network cards have the profile's MAC addresses", |s| Box::pin(cards(s))),
        Claim::not_on_emulator("each network card has link status and speed", ONE_TEMPLATE, |s| {
            Box::pin(links_and_speeds(s))
        }),
        Claim::both("drives have the profile's capacities", |s| Box::pin(drives(s))),
        Claim::not_on_emulator(
            "each drive has a unique serial number and its model",
            ONE_TEMPLATE,
            |s| Box::pin(drives_differ(s)),
        ),
        Claim::both("simple storage has the same capacities", |s| {
            Box::pin(simple_storage(s))
        }),
        Claim::both("storage without RAID has no volumes", |s| Box::pin(no_volumes(s))),
        Claim::both("system and manager link each other", |s| Box::pin(manager(s))),
        Claim::both("system and chassis link each other", |s| Box::pin(chassis(s))),
        Claim::both("the manager links the virtual media", |s| Box::pin(media_of_manager(s))),
        Claim::both("BIOS and BMC have a version", |s| Box::pin(versions(s))),
        Claim::both("the BIOS settings can be read", |s| Box::pin(bios(s))),
        Claim::both("secure boot can be read and is off", |s| Box::pin(secure_boot(s))),
        Claim::not_on_emulator(
            "manufacturer, model and serial number are the profile's",
            ONE_TEMPLATE,
            |s| Box::pin(plate(s)),
        ),
        Claim::not_on_emulator(
            "each link leads to a resource with this address",
            "which links a list of firmware and memory modules that it does not serve",
            |s| Box::pin(no_broken_link(s)),
        ),
    ]
}

async fn listed(service: &Service) -> anyhow::Result<()> {
    let systems = service.members("/redfish/v1/Systems").await?;
    let uuid = service.number.uuid();
    let found = systems
        .iter()
        .any(|system| text(system, "/UUID").is_ok_and(|found| found == uuid));
    ensure!(found, "no system {uuid}");
    Ok(())
}

async fn identified(service: &Service) -> anyhow::Result<()> {
    let (system, uuid) = (service.system().await?, service.number.uuid());
    same(text(&system, "/Id")?, &uuid)?;
    same(text(&system, "/UUID")?, &uuid)?;
    same(text(&system, "/@odata.id")?, service.system_path())
}

async fn state_in_words(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    let power = text(&system, "/PowerState")?;
    ensure!(matches!(power, "On" | "Off"), "PowerState is {power}");
    same(text(&system, "/Status/State")?, "Enabled")?;
    same(text(&system, "/Status/Health")?, "OK")
}

async fn memory(service: &Service) -> anyhow::Result<()> {
    let gib = number(&service.system().await?, "/MemorySummary/TotalSystemMemoryGiB")?;
    same(gib, service.profile.memory_mib / 1024)
}

async fn sockets(service: &Service) -> anyhow::Result<()> {
    let sockets = u64::from(service.profile.cpu.sockets);
    same(number(&service.system().await?, "/ProcessorSummary/Count")?, sockets)?;
    same(u64::try_from(service.part("Processors").await?.len())?, sockets)
}

async fn processors(service: &Service) -> anyhow::Result<()> {
    let cpu = &service.profile.cpu;
    for processor in service.part("Processors").await? {
        same(text(&processor, "/Model")?, &cpu.model)?;
        same(text(&processor, "/ProcessorArchitecture")?, "x86")?;
        same(number(&processor, "/TotalCores")?, u64::from(cpu.cores / cpu.sockets))?;
        same(
            number(&processor, "/TotalThreads")?,
            u64::from(cpu.threads / cpu.sockets),
        )?;
    }
    Ok(())
}

async fn cards(service: &Service) -> anyhow::Result<()> {
    let cards = service.part("EthernetInterfaces").await?;
    let found: anyhow::Result<BTreeSet<String>> = cards
        .iter()
        .map(|card| Ok(text(card, "/MACAddress")?.to_lowercase()))
        .collect();
    let wanted: BTreeSet<String> = service
        .profile
        .each_nic()
        .map(|(index, _)| service.number.mac(index))
        .collect();
    same(cards.len(), wanted.len())?;
    same(found?, wanted)
}

async fn links_and_speeds(service: &Service) -> anyhow::Result<()> {
    for (card, (_, group)) in service
        .part("EthernetInterfaces")
        .await?
        .iter()
        .zip(service.profile.each_nic())
    {
        same(number(card, "/SpeedMbps")?, u64::from(group.speed_mbps))?;
        let status = if group.carrier { "LinkUp" } else { "LinkDown" };
        same(text(card, "/LinkStatus")?, status)?;
    }
    Ok(())
}

async fn all_drives(service: &Service) -> anyhow::Result<Vec<Value>> {
    let mut drives = Vec::new();
    for controller in service.part("Storage").await? {
        for address in addresses(&controller, "/Drives")? {
            drives.push(service.get(address).await?);
        }
    }
    Ok(drives)
}

fn capacities(service: &Service) -> Vec<u64> {
    let mut bytes: Vec<u64> = service.profile.each_disk().map(|(_, _, group)| group.bytes).collect();
    bytes.sort_unstable();
    bytes
}

async fn drives(service: &Service) -> anyhow::Result<()> {
    let drives = all_drives(service).await?;
    let found: anyhow::Result<Vec<u64>> = drives.iter().map(|drive| number(drive, "/CapacityBytes")).collect();
    let mut found = found?;
    found.sort_unstable();
    same(found, capacities(service))
}

async fn drives_differ(service: &Service) -> anyhow::Result<()> {
    let drives = all_drives(service).await?;
    let mut serials = BTreeSet::new();
    for (drive, (_, _, group)) in drives.iter().zip(service.profile.each_disk()) {
        same(text(drive, "/Model")?, &group.model)?;
        serials.insert(text(drive, "/SerialNumber")?);
    }
    same(serials.len(), drives.len())
}

async fn simple_storage(service: &Service) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for controller in service.part("SimpleStorage").await? {
        let devices = controller.get("Devices").and_then(Value::as_array);
        for device in devices.context("no Devices")? {
            found.push(number(device, "/CapacityBytes")?);
        }
    }
    found.sort_unstable();
    same(found, capacities(service))
}

async fn no_volumes(service: &Service) -> anyhow::Result<()> {
    for controller in service.part("Storage").await? {
        same(service.members(link(&controller, "Volumes")?).await?.len(), 0)?;
    }
    Ok(())
}

/// The only resource that the system links at `there`, provided it links the system at `back`.
async fn linked_resource(service: &Service, there: &str, back: &str) -> anyhow::Result<Value> {
    let system = service.system().await?;
    let links = addresses(&system, there)?;
    let resource = service.get(links.first().context("no link")?).await?;
    let systems = addresses(&resource, back)?;
    ensure!(
        systems.contains(&service.system_path()),
        "it links {systems:?} and not the system"
    );
    Ok(resource)
}

async fn manager(service: &Service) -> anyhow::Result<()> {
    let manager = linked_resource(service, "/Links/ManagedBy", "/Links/ManagerForServers").await?;
    same(text(&manager, "/ManagerType")?, "BMC")?;
    let all = service.members("/redfish/v1/Managers").await?;
    ensure!(
        all.iter().any(|one| one.get("Id") == manager.get("Id")),
        "it is not among the managers"
    );
    Ok(())
}

async fn chassis(service: &Service) -> anyhow::Result<()> {
    linked_resource(service, "/Links/Chassis", "/Links/ComputerSystems")
        .await
        .map(drop)
}

async fn media_of_manager(service: &Service) -> anyhow::Result<()> {
    let manager = linked_resource(service, "/Links/ManagedBy", "/Links/ManagerForServers").await?;
    let drives = service.members(link(&manager, "VirtualMedia")?).await?;
    ensure!(!drives.is_empty(), "it has no drive");
    Ok(())
}

async fn versions(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    ensure!(!text(&system, "/BiosVersion")?.is_empty(), "the BIOS has no version");
    let manager = linked_resource(service, "/Links/ManagedBy", "/Links/ManagerForServers").await?;
    ensure!(
        !text(&manager, "/FirmwareVersion")?.is_empty(),
        "the BMC has no version"
    );
    Ok(())
}

async fn bios(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    let bios = service.get(link(&system, "Bios")?).await?;
    same(text(&bios, "/Attributes/BootMode")?, "Uefi")
}

async fn secure_boot(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    let secure = service.get(link(&system, "SecureBoot")?).await?;
    same(secure.get("SecureBootEnable"), Some(&Value::Bool(false)))?;
    same(text(&secure, "/SecureBootCurrentBoot")?, "Disabled")
}

async fn plate(service: &Service) -> anyhow::Result<()> {
    let (system, vendor) = (service.system().await?, &service.profile.vendor);
    same(text(&system, "/Manufacturer")?, &vendor.manufacturer)?;
    same(text(&system, "/Model")?, &vendor.product)?;
    same(text(&system, "/SerialNumber")?, &service.number.serial())?;
    same(text(&system, "/BiosVersion")?, &vendor.firmware.version)
}

async fn no_broken_link(service: &Service) -> anyhow::Result<()> {
    let (mut todo, mut seen) = (vec!["/redfish/v1/".to_owned()], BTreeSet::new());
    while let Some(path) = todo.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let resource = service.get(&path).await?;
        same(text(&resource, "/@odata.id")?, &path)?;
        collect_links(&resource, &mut todo);
    }
    Ok(())
}

/// Each link in a resource, except those with a fragment, which point into another resource.
fn collect_links(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().filter(|_| key == "@odata.id") {
                    Some(address) if !address.contains('#') => found.push(address.to_owned()),
                    _ => collect_links(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_links(item, found)),
        _ => {}
    }
}
