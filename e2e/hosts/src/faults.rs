//! Each fault of `docs/ironic-faults.md`, on a machine of its own: what its host says, and that it goes on by itself when
//! the fault is gone.
//!
//! Wants an Ironic that loses patience in seconds (`EXTRA_CONF=e2e/ironic/impatient.conf`). The sort of error is
//! claimed; the words are shown, since most are Ironic's.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::future::join_all;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, ProvisioningState};
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::Arguments;
use crate::claims::Claims;
use crate::phase::Phase;
use crate::world::{Setup, World};

/// A fault that ends in no error is looked at for so long.
const LOOK: Duration = Duration::from_secs(90);

/// When a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the host exists: while it is registered or inspected.
    Enrolling,
    /// When it gets its image, and is cleaned first.
    Cleaning,
    /// When it gets its image, and is not cleaned.
    Deploying,
}

/// A fault as labhosts takes it, its name, when it strikes, and the sort of error; none where Ironic never comes to an end.
struct Case(&'static str, &'static str, When, Option<ErrorType>);

const CASES: [Case; 15] = {
    use ErrorType::{Inspection, Provisioning, Registration};
    use When::{Cleaning, Deploying, Enrolling};
    [
        Case("dead BMC", r#"["dead-bmc"]"#, Enrolling, Some(Registration)),
        Case("slow BMC, 30 s a call", r#"[{"slow-bmc": 30}]"#, Enrolling, None),
        Case("wrong password", r#"["wrong-password"]"#, Enrolling, Some(Registration)),
        Case(
            "BMC answers 503",
            r#"[{"bmc-status": 503}]"#,
            Enrolling,
            Some(Registration),
        ),
        Case(
            "power does not change",
            r#"["power-stuck"]"#,
            Enrolling,
            Some(Inspection),
        ),
        Case("MAC not matching", r#"["foreign-mac"]"#, Enrolling, Some(Inspection)),
        Case("ramdisk never boots", r#"["no-boot"]"#, Enrolling, Some(Inspection)),
        Case(
            "inventory cannot be collected",
            r#"["inspection-error"]"#,
            Enrolling,
            Some(Inspection),
        ),
        Case(
            "agent never heartbeats",
            r#"["no-heartbeat"]"#,
            Cleaning,
            Some(Provisioning),
        ),
        Case(
            "clean step fails",
            r#"["clean-step-fails"]"#,
            Cleaning,
            Some(Provisioning),
        ),
        Case(
            "agent never heartbeats",
            r#"["no-heartbeat"]"#,
            Deploying,
            Some(Provisioning),
        ),
        Case(
            "checksum mismatch",
            r#"["checksum-mismatch"]"#,
            Deploying,
            Some(Provisioning),
        ),
        Case("disk too small", r#"["disk-too-small"]"#, Deploying, Some(Provisioning)),
        Case(
            "power does not change",
            r#"["power-stuck"]"#,
            Deploying,
            Some(Provisioning),
        ),
        Case("dead BMC", r#"["dead-bmc"]"#, Deploying, Some(Provisioning)),
    ]
};

/// How many machines the cases need.
pub(crate) fn machines() -> u16 {
    u16::try_from(CASES.len()).unwrap_or(u16::MAX)
}

/// What a host said.
struct Told {
    state: String,
    kind: String,
    message: String,
    /// Until it said so, and until it was as asked for once the fault was gone.
    took: [Duration; 2],
}

/// Strikes them all, side by side, and writes the page.
pub(crate) async fn strike(
    arguments: &Arguments,
    setup: Setup,
    page: &Path,
    claims: &mut Claims,
) -> anyhow::Result<()> {
    let world = World::begin(arguments, setup).await?;
    let cases = CASES.iter().zip(world.numbers());
    let told = join_all(cases.map(|(case, number)| suffer(&world, case, number))).await;
    let mut rows = Vec::new();
    for (case, told) in CASES.iter().zip(told) {
        let says = format!(
            "{} while {:?}: the host says what, and goes on when it is gone",
            case.0, case.2
        );
        match told {
            Ok(told) => {
                rows.push(row(case, &told));
                claims.judge(says, Ok(()));
            }
            Err(error) => claims.judge(says, Err(error)),
        }
    }
    let removed = join_all(world.numbers().map(|number| remove(&world, number))).await;
    claims.judge("afterwards every host can be deleted", removed.into_iter().collect());
    world.end().await?;
    if rows.len() == CASES.len() {
        std::fs::write(page, render(&rows)).with_context(|| format!("cannot write {}", page.display()))?;
    }
    Ok(())
}

async fn remove(world: &World, number: Number) -> anyhow::Result<()> {
    Phase::Delete.begin(world, number).await?;
    Phase::Delete.end(world, number).await
}

async fn suffer(world: &World, case: &Case, number: Number) -> anyhow::Result<Told> {
    let (lab, faults) = (world.lab()?, serde_json::from_str::<Value>(case.1)?);
    if case.2 == When::Enrolling {
        lab.set_faults(number, &faults).await?;
    }
    Phase::Enrol.begin(world, number).await?;
    if case.2 == When::Deploying {
        world
            .edit(number, json!({ "spec": { "automatedCleaningMode": "disabled" } }))
            .await?;
    }
    let wanted = if case.2 == When::Enrolling {
        Phase::Enrol
    } else {
        Phase::Provision
    };
    if wanted == Phase::Provision {
        Phase::Enrol.end(world, number).await?;
        lab.set_faults(number, &faults).await?;
        wanted.begin(world, number).await?;
    }
    let began = Instant::now();
    if case.3.is_some() {
        let fails = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type.is_some());
        world.until(number, "in error", fails).await?;
    } else {
        sleep(LOOK).await;
    }
    let took = began.elapsed();
    let host = world.get(number).await?.context("the host is gone")?;
    says(&host, case.3)?;
    let shown = serde_json::to_string(&host)?;
    ensure!(!shown.contains(&lab.endpoint.password), "the password is shown");
    let status = &host.status;
    lab.set_faults(number, &json!([])).await?;
    let mended = Instant::now();
    wanted.end(world, number).await?;
    Ok(Told {
        state: status.provisioning.state.to_string(),
        kind: serde_json::to_value(status.error_type)?
            .as_str()
            .unwrap_or("none")
            .to_owned(),
        message: status.error_message.replace(&status.provisioning.id, "NODE"),
        took: [took, mended.elapsed()],
    })
}

/// Whether the host tells that sort of error, with words, or none and is registered still.
fn says(host: &BareMetalHost, sort: Option<ErrorType>) -> anyhow::Result<()> {
    let status = &host.status;
    ensure!(
        status.error_type == sort,
        "it says {:?}: {}",
        status.error_type,
        status.error_message
    );
    ensure!(
        sort.is_none() != (status.error_count > 0 && !status.error_message.is_empty()),
        "it says {} times {:?}",
        status.error_count,
        status.error_message
    );
    if sort.is_none() {
        ensure!(
            status.provisioning.state == ProvisioningState::Registering,
            "{}",
            status.provisioning.state
        );
    }
    Ok(())
}

/// Rounded, so that a repetition changes few lines.
fn about(took: Duration) -> String {
    format!("{} s", (took.as_secs() + 15) / 30 * 30)
}

fn row(case: &Case, told: &Told) -> String {
    let Told {
        state,
        kind,
        message,
        took: [said, mended],
    } = told;
    let message = message.replace('|', "\\|").replace('\n', " ");
    let message = if message.is_empty() { "none" } else { &message };
    let (said, mended) = (about(*said), about(*mended));
    format!(
        "| {} | {:?} | {state} | {kind} | {message} | {said} | {mended} |",
        case.0, case.2
    )
}

fn render(rows: &[String]) -> String {
    let mut page = String::from(
        "# What a host says when its machine is at fault\n\n\
         Made by `make host-faults` from the real program, a real Ironic and simulated machines: [what Ironic says](ironic-faults.md)\n\
         of the same faults is where the words come from. The sort of error is claimed, the words are shown. The last column is how\n\
         long the host took, once the fault was gone, to be what it was asked to be, without anybody's help: a host waits one to two\n\
         minutes after its first failure, and twice as long after each further one. Time-outs are short ones\n\
         (`e2e/ironic/impatient.conf`).\n\n\
         | fault | while | state | error type | message | said after | mended after |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{row}");
    }
    page
}

#[cfg(test)]
mod tests {
    use metal3_sim_bmc::fault::Faults;

    use super::*;

    #[test]
    fn every_fault_is_one_that_labhosts_takes() {
        for Case(name, fault, ..) in CASES {
            assert!(serde_json::from_str::<Faults>(fault).is_ok(), "{name}: {fault}");
        }
    }
}
