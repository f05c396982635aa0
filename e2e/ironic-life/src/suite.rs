//! One suite of claims, run against our BMCs and against sushy-tools' emulator with a machine of the same profile: what
//! both answer alike is the cross-check of our reading of Redfish, what they answer differently is listed with a reason.
//!
//! It needs no Ironic, only the Python packages that come with it.

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
    processes::{BEAT, Files, Lab, Sushy, Wish, sushy_machines},
    run::built_in_profile,
};
use claim::{Claim, Verdict};
use service::Service;

/// Eight network cards, two processors, forty disks: a list that is cut short or mixed up shows.
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

/// Proves every claim on both services and prints what came of it.
///
/// # Errors
/// When a service does not start, or when anything differs that is not listed.
pub(crate) async fn prove(place: &Place, python: &Path) -> anyhow::Result<()> {
    let begun = Instant::now();
    let folder = place.cache.join("redfish-suite");
    std::fs::create_dir_all(&folder)?;
    let started = Started::start(place, &folder, python).await?;
    let verdicts = judge_all(&started).await;
    started.stop().await?;
    let mut counts = (0_u32, 0_u32, 0_u32);
    for (says, verdict) in &verdicts? {
        println!("{}", verdict.line(says));
        let (holds, listed, wrong) = &mut counts;
        let count = match verdict {
            Verdict::Holds => holds,
            Verdict::Listed { .. } => listed,
            Verdict::Wrong(_) => wrong,
        };
        *count += 1;
    }
    let (holds, listed, wrong) = counts;
    println!(
        "{holds} claims hold on both, {listed} differ for a listed reason, wrong: {wrong}; {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    if wrong > 0 {
        bail!("wrong claims: {wrong}; logs are in {}", folder.display());
    }
    Ok(())
}

/// Both services, and a file server whose images they are told to read.
struct Started {
    lab: Lab,
    sushy: Sushy,
    files: Files,
    ours: Service,
    emulator: Service,
    folder: PathBuf,
}

impl Started {
    async fn start(place: &Place, folder: &Path, python: &Path) -> anyhow::Result<Self> {
        let profile = built_in_profile(PROFILE)?;
        let (emulator_port, files_port) = (place.port.saturating_add(1), place.port.saturating_add(2));
        let ca = folder.join("no-ironic.crt");
        // Our machines ask for the certificate of an Ironic, and nothing here boots, so they never call one.
        std::fs::write(&ca, tls::identity([IpAddr::V4(Ipv4Addr::LOCALHOST)])?.pem.as_bytes())?;
        let wish = Wish {
            machines: vec![format!("{PROFILE}=1")],
            port: place.port,
            beat: BEAT,
        };
        let machines: Value = sushy_machines(&profile, 1);
        let (lab, sushy, files) = futures::future::try_join3(
            Lab::start(&ca, folder, &wish),
            Sushy::start(python, folder, emulator_port, &machines),
            Files::start(python, folder, files_port, &["one.iso", "two.iso"]),
        )
        .await?;
        let our_place = lab.endpoint.machines.first().context("labhosts has no machine")?;
        let bmc = Bmc::of_lab(&lab.endpoint, our_place);
        let ours = Service::new(bmc, MACHINE, profile.clone(), files.url.clone())?;
        let emulator = Service::new(sushy.bmc(MACHINE), MACHINE, profile, files.url.clone())?;
        Ok(Self {
            lab,
            sushy,
            files,
            ours,
            emulator,
            folder: folder.to_owned(),
        })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.lab.stop().await?;
        self.sushy.stop().await?;
        self.files.stop().await?;
        // Logins of services that are gone, and images of zeros.
        for data in ["labhosts", "sushy", "files"] {
            std::fs::remove_dir_all(self.folder.join(data))?;
        }
        Ok(())
    }
}

async fn judge_all(started: &Started) -> anyhow::Result<Vec<(&'static str, Verdict)>> {
    let mut verdicts = Vec::new();
    for claim in claims() {
        let (ours, emulator) =
            futures::future::join((claim.proof)(&started.ours), (claim.proof)(&started.emulator)).await;
        verdicts.push((claim.says, claim.judge(ours, emulator)));
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::claims;

    #[test]
    fn no_two_claims_say_the_same() {
        let all = claims();
        let different: BTreeSet<&str> = all.iter().map(|claim| claim.says).collect();
        assert_eq!(different.len(), all.len());
    }
}
