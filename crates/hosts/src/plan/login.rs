//! Whether the BMC of a registered host accepts the login that its Secret gained.
//!
//! Ironic has room for one login, never shows a password, and logs in to the BMC only for something that it does there. So a new
//! login is written into the node, and Ironic reads the boot device with it: the answer is newer than the login, and nothing of
//! the machine changes. Until the BMC has accepted it, `goodCredentials` names the former version: that is all that is kept of it.
//!
//! | The BMC | The host |
//! |---|---|
//! | accepts the login | `goodCredentials` names its version |
//! | refuses it | has an error that names both versions; nothing is ordered until a try succeeds. The tries go on, and begin at once when the Secret changes |
//! | does not answer, or Ironic works with the node | goes on as before; it is tried again later |
//! | cannot be asked, as Ironic's driver or policy has it | `goodCredentials` names its version |
//!
//! The first login of a host is tried by Ironic when it verifies the node. A deleted host waits for no login.

use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, CredentialsStatus, ErrorType, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Next, WaitingOn};

use crate::action::Count;
use crate::facts::{LoginAnswer, Read};
use crate::names::reason;
use crate::node::tries_login;
use crate::plan::backoff;
use crate::plan::conditions::POWER_FAULT;
use crate::plan::error::{Failure, LOGIN_REFUSED};
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::wait;

/// Requires that the BMC does not refuse the tried login. Records it as good once the BMC has accepted it.
///
/// `is_tried`: the status records the login of the present Secret as the tried one.
pub(crate) fn require_accepted(planner: &mut Planner<'_>, node: &Node, is_tried: bool) -> PlanResult<()> {
    let status = &planner.draft.status;
    if !is_tried || status.good_credentials == status.tried_credentials {
        return Ok(());
    }
    let is_first = status.good_credentials == CredentialsStatus::default();
    if is_first || !tries_login(node) {
        // differs: `host-access-tried`. The Go manager reports every login that it sent.
        if *planner.state() == State::Registering {
            planner.record_event(reason::ACCESS_VALIDATED, "Verified access to BMC");
        }
        record_good(planner);
        return Ok(());
    }
    // A deletion must not wait for ever.
    if planner.is_deleting() {
        return Ok(());
    }
    decide(planner, node)
}

// differs: `host-login-proven`. The Go manager takes each login that Ironic stored for a good one.
fn decide(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let answer = match planner.facts.login_answer {
        Observed::Present(answer) => answer,
        Observed::Unknown(_) | Observed::Absent => {
            return match obstacle(planner, node) {
                Some(next) => wait_for_answer(planner, next),
                None => Err(Decision::read(Read::Login)),
            };
        }
    };
    match answer {
        LoginAnswer::Accepted => {
            let message = format!(
                "Verified access to BMC with the login of {}",
                shown(&planner.draft.status.tried_credentials)
            );
            planner.record_event(reason::ACCESS_VALIDATED, message);
            record_good(planner);
            Ok(())
        }
        LoginAnswer::Refused(why) => {
            planner.count(Count::One("metal3_credentials_no_management_access_total"));
            let message = refused(&planner.draft.status, why);
            // Not counted: it is no attempt of the operation that waits, some of which end after a number of attempts.
            let failure = Failure::retryable(ErrorType::Registration, message).uncounted();
            Err(Decision::Fail(failure.with_event(reason::CREDENTIAL_ERROR)))
        }
        // It counts as the first one does.
        LoginAnswer::Unsupported => {
            record_good(planner);
            Ok(())
        }
        LoginAnswer::Unknown => {
            let pause = planner.facts.login_pause.unwrap_or_default();
            wait_for_answer(planner, wait::for_retry(pause))
        }
    }
}

/// Why the login is not tried now.
fn obstacle(planner: &Planner<'_>, node: &Node) -> Option<Next> {
    if node.reservation.is_some() || node.provision_state.is_transitional() {
        // It would reject the request.
        return Some(wait::on_node("Ironic works with the node"));
    }
    if node.fault.as_deref() == Some(POWER_FAULT) && !is_refusal_recorded(planner) {
        // Ironic would hold the node, and one of few threads, until the BMC is given up. It ends the fault once the BMC answers.
        return Some(wait::on_node("Ironic cannot reach the BMC"));
    }
    if let Some(left) = planner.facts.unanswered {
        // A former login may still be written.
        return Some(wait::on_lost_response(left));
    }
    let of_refusal = planner.remaining_delay(backoff::UNCOUNTED);
    let of_refusal = of_refusal.filter(|_| is_refusal_recorded(planner));
    of_refusal.max(planner.facts.login_pause).map(wait::for_retry)
}

/// Goes on without an answer, unless the BMC has refused this login before.
fn wait_for_answer(planner: &mut Planner<'_>, next: Next) -> PlanResult<()> {
    if is_refusal_recorded(planner) {
        return Err(Decision::WaitUnchanged(next));
    }
    if let Next::Waiting(WaitingOn {
        recheck: Some(left), ..
    }) = next
    {
        planner.try_login_after(left);
    }
    Ok(())
}

fn record_good(planner: &mut Planner<'_>) {
    let status = &mut planner.draft.status;
    status.good_credentials.clone_from(&status.tried_credentials);
}

/// Records that a login is written into a node that Ironic has verified, with another one: it has not been tried, also if no
/// login of the host was before.
pub(crate) fn record_untried(status: &mut BareMetalHostStatus, node: &Node, login: &CredentialsStatus) {
    let is_first = status.good_credentials == CredentialsStatus::default();
    if is_first && node.provision_state != S::Enroll && tries_login(node) {
        status.good_credentials = CredentialsStatus {
            credentials: login.credentials.clone(),
            credentials_version: None,
        };
    }
}

/// Whether the error in the status is about the tried login.
fn is_refusal_recorded(planner: &Planner<'_>) -> bool {
    let status = &planner.host().status;
    let begin = refusal_of(&planner.draft.status);
    status.error_type == Some(ErrorType::Registration) && status.error_message.starts_with(&begin)
}

fn refusal_of(status: &BareMetalHostStatus) -> String {
    format!("{LOGIN_REFUSED}{} (", shown(&status.tried_credentials))
}

fn refused(status: &BareMetalHostStatus, why: &str) -> String {
    format!(
        "{}{why}); {}. Correct the Secret, or the account of the BMC: the login is tried again after some minutes, and at once \
         when the Secret changes. Until then nothing is done with the machine",
        refusal_of(status),
        former(&status.good_credentials)
    )
}

/// What is said of a login that the BMC has not accepted yet. `None`: it accepted the tried one, or none was needed.
pub(crate) fn unproven(status: &BareMetalHostStatus) -> Option<String> {
    let (good, tried) = (&status.good_credentials, &status.tried_credentials);
    let is_pending = good != tried && *good != CredentialsStatus::default() && tried.credentials_version.is_some();
    is_pending.then(|| {
        format!(
            "Ironic has the login of {}, and the BMC has not accepted it yet; {}",
            shown(tried),
            former(good)
        )
    })
}

fn former(good: &CredentialsStatus) -> String {
    match good.credentials_version {
        Some(_) => format!("the last one that it accepted is that of {}", shown(good)),
        None => "it is not known to have accepted another one".to_owned(),
    }
}

fn shown(login: &CredentialsStatus) -> String {
    let name = login
        .credentials
        .as_ref()
        .and_then(|SecretReference { name, .. }| name.as_deref());
    let version = login.credentials_version.as_deref();
    format!(
        "Secret {}, version {}",
        name.unwrap_or_default(),
        version.unwrap_or_default()
    )
}
