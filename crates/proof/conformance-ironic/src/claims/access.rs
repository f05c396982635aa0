//! Connections to Ironic: microversion, login, TLS.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use chrono::{DateTime, Utc};
use metal3_domain::clock::ManualClock;
use metal3_ironic::calls::service;
use metal3_ironic::endpoint::{Ca, Login};
use metal3_ironic::{Client, Error};

use crate::lab::{Lab, expect_error};

pub(crate) async fn the_first_response_negotiates_the_microversion_without_an_extra_request(
    lab: &Lab,
) -> anyhow::Result<()> {
    let client = lab.another_client().await?;
    let drivers = client.send(&service::drivers()).await?.value;
    let features = client.features().await?;
    ensure!(client.requests_sent() == 1, "{} requests", client.requests_sent());
    ensure!(features.abort_deployment(), "API {}", features.version());
    ensure!(
        drivers.items.iter().any(|driver| driver.name == "fake-hardware"),
        "{drivers:?}"
    );
    ensure!(
        !client.send(&service::conductors()).await?.value.items.is_empty(),
        "no conductor"
    );
    Ok(())
}

pub(crate) async fn a_wrong_password_is_unauthorised(lab: &Lab) -> anyhow::Result<()> {
    let mut settings = lab.settings()?;
    settings.login = Login::Basic {
        username: "admin".into(),
        password: "not-the-password".into(),
    };
    let client = Client::new(settings, Arc::clone(&lab.clock)).await?;
    let error = expect_error(client.send(&service::drivers()).await, "unauthorised")?;
    ensure!(!error.to_string().contains("not-the-password"), "{error}");
    Ok(())
}

/// A CA that did not sign Ironic's certificate.
const ANOTHER_CA: &str = include_str!("another_ca.pem");

pub(crate) async fn another_ca_is_untrusted_until_the_file_is_corrected(lab: &Lab) -> anyhow::Result<()> {
    let mut settings = lab.settings()?;
    let right = std::fs::read(settings.trust.ca.as_ref().and_then(Ca::file).context("no CA")?)?;
    let file = std::env::temp_dir().join(format!("metal3-ironic-contract-{}.pem", std::process::id()));
    std::fs::write(&file, ANOTHER_CA)?;
    settings.trust.ca = Some(Ca::File(file.clone()));
    let clock = Arc::new(ManualClock::at(DateTime::<Utc>::UNIX_EPOCH));
    let client = Client::new(settings, clock.clone()).await?;
    let before = client.send(&service::drivers()).await;
    std::fs::write(&file, right)?;
    clock.advance(Duration::from_secs(10));
    let after = client.send(&service::drivers()).await;
    // An invalid file does not replace the CA in use.
    std::fs::write(&file, "nonsense")?;
    clock.advance(Duration::from_secs(10));
    let still = client.send(&service::drivers()).await;
    std::fs::remove_file(&file)?;
    let error = expect_error(before, "untrusted")?;
    ensure!(!matches!(error, Error::Unreachable { .. }), "{error}");
    after?;
    still?;
    Ok(())
}

pub(crate) async fn forty_concurrent_reads_all_succeed(lab: &Lab) -> anyhow::Result<()> {
    let before = lab.client.requests_sent();
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let client = lab.client.clone();
        reads.spawn(async move { client.send(&service::drivers()).await.map(|_| ()) });
    }
    while let Some(read) = reads.join_next().await {
        read??;
    }
    let sent = lab.client.requests_sent().saturating_sub(before);
    ensure!(sent == 40, "{sent} requests");
    Ok(())
}

pub(crate) async fn a_response_has_the_time_of_ironic(lab: &Lab) -> anyhow::Result<()> {
    let server = lab
        .client
        .send(&service::root())
        .await?
        .server_time
        .context("no date")?;
    let apart = (lab.clock.now() - server).abs();
    ensure!(apart.num_seconds() < 60, "{apart} apart on one machine");
    Ok(())
}
