//! One suite of claims, run against the BMCs of labhosts and against sushy-tools' emulator with a machine of the same
//! profile. Equal answers confirm labhosts' implementation of Redfish; each difference is listed with a reason.
//!
//! It requires the Python packages of Ironic, and no running Ironic.

mod access;
mod boot;
mod claim;
mod media;
mod power;
mod refusals;
mod resources;
mod service;

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use metal3_sim_bmc::{identity::Number, tls};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    Place,
    level::Bmc,
    processes::{Files, HEARTBEAT_MS, Lab, LabOptions, Sushy, sushy_machines},
    run::built_in_profile,
};
use claim::{Claim, Outcome};
use service::Service;

/// Eight network cards, two processors, forty disks: reveals truncated or mixed-up lists.
const PROFILE: &str = "large";
const MACHINE: Number = Number(1);

fn claims() -> Vec<Claim> {
    [
        access::claims(),
        resources::claims(),
        power::claims(),
        boot::claims(),
        media::claims(),
        refusals::claims(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Proves each claim on both services and prints the outcomes.
///
/// # Errors
/// When a service does not start, or an unlisted difference occurs.
pub(crate) async fn prove(place: &Place, python: &Path) -> anyhow::Result<()> {
    let started = Instant::now();
    let folder = place.cache.join("redfish-suite");
    std::fs::create_dir_all(&folder)?;
    let services = Services::start(place, &folder, python).await?;
    let outcomes = compare_all(&services).await;
    services.stop().await?;
    let mut counts = (0_u32, 0_u32, 0_u32);
    for (text, outcome) in &outcomes? {
        println!("{}", outcome.line(text));
        let (holds, listed, wrong) = &mut counts;
        let count = match outcome {
            Outcome::Holds => holds,
            Outcome::Listed { .. } => listed,
            Outcome::Wrong(_) => wrong,
        };
        *count += 1;
    }
    let (holds, listed, wrong) = counts;
    println!(
        "{holds} claims hold on both, {listed} differ for a listed reason, wrong: {wrong}; {:.1} s",
        started.elapsed().as_secs_f64()
    );
    if wrong > 0 {
        bail!("wrong claims: {wrong}; logs are in {}", folder.display());
    }
    Ok(())
}

/// Both services, and the file server of their images.
struct Services {
    lab: Lab,
    sushy: Sushy,
    files: Files,
    labhosts: Service,
    emulator: Service,
    folder: PathBuf,
}

impl Services {
    async fn start(place: &Place, folder: &Path, python: &Path) -> anyhow::Result<Self> {
        let profile = built_in_profile(PROFILE)?;
        let (emulator_port, files_port) = (place.port.saturating_add(1), place.port.saturating_add(2));
        let ca = folder.join("no-ironic.crt");
        // labhosts requires the certificate of an Ironic; no machine boots here, so none is contacted.
        std::fs::write(&ca, tls::identity([IpAddr::V4(Ipv4Addr::LOCALHOST)])?.pem.as_bytes())?;
        let options = LabOptions {
            machines: format!("{PROFILE}=1"),
            port: place.port,
            heartbeat_ms: HEARTBEAT_MS,
        };
        let machines: Value = sushy_machines(&profile, 1);
        let (lab, sushy, files) = futures::future::try_join3(
            Lab::start(&ca, folder, &options),
            Sushy::start(python, folder, emulator_port, &machines),
            Files::start(python, folder, files_port, &["one.iso", "two.iso"]),
        )
        .await?;
        let machine = lab.endpoint.machines.first().context("labhosts has no machine")?;
        let bmc = Bmc::of_lab(&lab.endpoint, machine);
        let labhosts = Service::new(bmc, MACHINE, profile.clone(), files.url.clone())?;
        let emulator = Service::new(sushy.bmc(MACHINE), MACHINE, profile, files.url.clone())?;
        Ok(Self {
            lab,
            sushy,
            files,
            labhosts,
            emulator,
            folder: folder.to_owned(),
        })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.lab.stop().await?;
        self.sushy.stop().await?;
        self.files.stop().await?;
        // Logins of stopped services, and images of zeros.
        for data in ["labhosts", "sushy", "files"] {
            std::fs::remove_dir_all(self.folder.join(data))?;
        }
        Ok(())
    }
}

async fn compare_all(services: &Services) -> anyhow::Result<Vec<(&'static str, Outcome)>> {
    let mut outcomes = Vec::new();
    for claim in claims() {
        let (labhosts, emulator) =
            futures::future::join((claim.proof)(&services.labhosts), (claim.proof)(&services.emulator)).await;
        outcomes.push((claim.text, claim.compare(labhosts, emulator)));
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::claims;

    #[test]
    fn claims_are_unique() {
        let all = claims();
        let different: BTreeSet<&str> = all.iter().map(|claim| claim.text).collect();
        assert_eq!(different.len(), all.len());
    }
}
