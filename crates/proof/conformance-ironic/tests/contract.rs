//! The claims hold on the simulated Ironic.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_conformance_ironic::{self as conformance, CLAIMS, Lab, Needs};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_ironic::endpoint::{Ca, Endpoint, Login, Settings};
use metal3_runtime::clock::TimerClock;
use metal3_sim_ironic::{Ironic, Options};

/// Like `slow_power.conf`: a power change takes longer than the lock timeout, and the power sync is frequent.
fn slow_power(clock: Arc<dyn Clock>) -> Ironic {
    let mut options = Options::new(1, clock);
    options.pace.fake_power = Duration::from_secs(4);
    options.pace.power_sync = Duration::from_secs(10);
    // The durations of labhosts.
    options.pace.boot = Duration::from_secs(2);
    options.pace.work = Duration::from_secs(1);
    Ironic::start(options)
}

#[tokio::test(start_paused = true)]
async fn every_claim_without_sockets_holds_in_process() {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let ironic = slow_power(Arc::clone(&clock));
    let lab = Lab::in_process(ironic, clock).unwrap();
    let claims: Vec<_> = CLAIMS.iter().filter(|claim| claim.needs != Needs::Sockets).collect();
    let (held, failed) = conformance::check(&lab, claims.iter().copied()).await;
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(held, claims.len());
}

#[tokio::test]
async fn every_claim_with_sockets_holds_over_https() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let ironic = slow_power(Arc::new(SystemClock::start()));
    let (username, password) = ("admin".to_owned(), "right".to_owned());
    let login = metal3_sim_ironic::Login {
        username: username.clone(),
        password: password.clone(),
    };
    let server = ironic.serve(0, &login).await.unwrap();
    let ca = std::env::temp_dir().join(format!("ironicsim-ca-{}.pem", std::process::id()));
    std::fs::write(&ca, server.ca()).unwrap();
    let mut settings = Settings::new(Endpoint::parse(&server.url()).unwrap());
    settings.trust.ca = Some(Ca::File(ca.clone()));
    settings.login = Login::Basic {
        username,
        password: password.into(),
    };
    let lab = Lab::connect(settings, &server.url()).await.unwrap();
    let selected =
        |claim: &&conformance::Claim| claim.needs == Needs::Sockets || claim.about == conformance::About::Access;
    let (held, failed) = conformance::check(&lab, CLAIMS.iter().filter(selected)).await;
    std::fs::remove_file(&ca).unwrap();
    server.stop().await;
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(held, 5);
}
