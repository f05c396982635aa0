//! Each fault of `docs/ironic-faults.md` on a machine of its own: the error in the host's status, its explanation, and the recovery
//! after the fault ends.
//!
//! Requires an Ironic with timeouts of seconds (`EXTRA_CONF=e2e/ironic/impatient.conf`). The error type is checked;
//! messages are shown only, since most are Ironic's.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::future::join_all;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, ProvisioningState};
use metal3_ironic_life::faults::{FAULTS, Fault, FaultPhase};
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::Arguments;
use crate::claims::Claims;
use crate::env::{Setup, TestEnv};
use crate::explained::last_link;
use crate::phase::Phase;

/// How long a host without an error is observed.
const NO_ERROR: Duration = Duration::from_secs(90);

/// When a fault is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the host exists: during registration or inspection.
    Enrolling,
    /// Before the host gets its image, with cleaning.
    Cleaning,
    /// Before the host gets its image, without cleaning.
    Deploying,
}

const fn when(fault: &Fault) -> When {
    match fault.phase {
        FaultPhase::Manage | FaultPhase::Inspect => When::Enrolling,
        FaultPhase::Clean => When::Cleaning,
        FaultPhase::Deploy => When::Deploying,
    }
}

/// The expected error type; `None` where Ironic does not finish.
fn expected_error(fault: &Fault) -> Option<ErrorType> {
    match fault.phase {
        FaultPhase::Manage if fault.json.contains("slow-bmc") => None,
        FaultPhase::Manage => Some(ErrorType::Registration),
        FaultPhase::Inspect => Some(ErrorType::Inspection),
        FaultPhase::Clean | FaultPhase::Deploy => Some(ErrorType::Provisioning),
    }
}

/// The status of a host under a fault.
struct Outcome {
    state: String,
    kind: String,
    message: String,
    /// Who has to act, as `kubectl metal3 why` says it.
    who_acts: &'static str,
    /// Until the error, and from the end of the fault until the desired state.
    took: [Duration; 2],
}

/// Injects all faults concurrently, and writes the page.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, page: &Path, claims: &mut Claims) -> anyhow::Result<()> {
    let env = TestEnv::start(arguments, setup).await?;
    let cases = FAULTS.iter().zip(env.numbers());
    let outcomes = join_all(cases.map(|(fault, number)| inject(&env, fault, number))).await;
    let mut rows = Vec::new();
    for (fault, outcome) in FAULTS.iter().zip(outcomes) {
        let claim = format!(
            "{} while {:?}: the host reports the error, its explanation names the fault, and it recovers when the fault ends",
            fault.name,
            when(fault)
        );
        claims.record(claim, outcome.map(|outcome| rows.push(row(fault, &outcome))));
    }
    let removed = join_all(env.numbers().map(|number| remove(&env, number))).await;
    claims.record("afterwards every host can be deleted", removed.into_iter().collect());
    env.stop().await?;
    if rows.len() == FAULTS.len() {
        std::fs::write(page, render(&rows)).with_context(|| format!("cannot write {}", page.display()))?;
    }
    Ok(())
}

async fn remove(env: &TestEnv, number: Number) -> anyhow::Result<()> {
    Phase::Delete.start(env, number).await?;
    Phase::Delete.wait(env, number).await
}

async fn inject(env: &TestEnv, fault: &Fault, number: Number) -> anyhow::Result<Outcome> {
    let (lab, faults) = (env.lab()?, serde_json::from_str::<Value>(fault.json)?);
    let (when, expected) = (when(fault), expected_error(fault));
    if when == When::Enrolling {
        lab.set_faults(number, &faults).await?;
    }
    Phase::Enrol.start(env, number).await?;
    if when == When::Deploying {
        env.edit(number, json!({ "spec": { "automatedCleaningMode": "disabled" } }))
            .await?;
    }
    let phase = if when == When::Enrolling {
        Phase::Enrol
    } else {
        Phase::Provision
    };
    if phase == Phase::Provision {
        Phase::Enrol.wait(env, number).await?;
        lab.set_faults(number, &faults).await?;
        phase.start(env, number).await?;
    }
    let injected = Instant::now();
    if expected.is_some() {
        let fails = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type.is_some());
        env.until(number, "in error", fails).await?;
    } else {
        sleep(NO_ERROR).await;
    }
    let took = injected.elapsed();
    let host = env.get(number).await?.context("the host does not exist")?;
    check_status(&host, expected)?;
    let shown = serde_json::to_string(&host)?;
    ensure!(!shown.contains(&lab.endpoint.password), "the host shows the password");
    let last = last_link(&host, fault)?;
    let status = &host.status;
    lab.set_faults(number, &json!([])).await?;
    let ended = Instant::now();
    phase.wait(env, number).await?;
    Ok(Outcome {
        state: status.provisioning.state.to_string(),
        kind: serde_json::to_value(status.error_type)?
            .as_str()
            .unwrap_or("none")
            .to_owned(),
        message: status.error_message.replace(&status.provisioning.id, "NODE"),
        who_acts: last.who_acts.as_str(),
        took: [took, ended.elapsed()],
    })
}

/// Checks that the host has an error of this type with a message; without an error it is still registering.
fn check_status(host: &BareMetalHost, expected: Option<ErrorType>) -> anyhow::Result<()> {
    let status = &host.status;
    ensure!(
        status.error_type == expected,
        "its error is {:?}: {}",
        status.error_type,
        status.error_message
    );
    ensure!(
        expected.is_none() != (status.error_count > 0 && !status.error_message.is_empty()),
        "it has {} errors with the message {:?}",
        status.error_count,
        status.error_message
    );
    if expected.is_none() {
        ensure!(
            status.provisioning.state == ProvisioningState::Registering,
            "{}",
            status.provisioning.state
        );
    }
    Ok(())
}

/// Rounded, so that another run changes few lines.
fn about(took: Duration) -> String {
    format!("{} s", (took.as_secs() + 15) / 30 * 30)
}

fn row(fault: &Fault, outcome: &Outcome) -> String {
    let Outcome {
        state,
        kind,
        message,
        who_acts,
        took: [failed, recovered],
    } = outcome;
    let message = message.replace('|', "\\|").replace('\n', " ");
    let message = if message.is_empty() { "none" } else { &message };
    let (failed, recovered) = (about(*failed), about(*recovered));
    format!(
        "| {} | {:?} | {state} | {kind} | {message} | {who_acts} | {failed} | {recovered} |",
        fault.name,
        when(fault)
    )
}

fn render(rows: &[String]) -> String {
    let mut page = String::from(
        "# Host status under faults of machines\n\n\
         Generated by `make host-faults` from the real program, a real Ironic and simulated machines. Most messages come from\n\
         [Ironic](ironic-faults.md). The error type is checked, and that `kubectl metal3 why`\n\
         names the fault and who has to act; the messages are examples. The last column is the time from the end of the fault until the host reached its desired state without help: a host retries one to two minutes after its first\n\
         failure, and doubles the delay after each further one. Timeouts are short (`e2e/ironic/impatient.conf`).\n\n\
         | fault | while | state | error type | message | who acts | error after | recovered after |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{row}");
    }
    page
}
