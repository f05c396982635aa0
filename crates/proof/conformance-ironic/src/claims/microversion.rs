//! Microversions and the form of errors, in raw responses.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, Raw};

pub(super) fn inner(raw: &Raw) -> anyhow::Result<Value> {
    let text = raw.body.get("error_message").and_then(Value::as_str);
    let text = text.with_context(|| format!("no error_message that is text: {}", raw.body))?;
    Ok(serde_json::from_str(text)?)
}

pub(crate) async fn an_error_is_a_nested_json_document(lab: &Lab) -> anyhow::Result<()> {
    let raw = lab.raw("GET", "/v1/nodes/contract~missing", "1.110", None).await?;
    ensure!(raw.status == 404, "{}", raw.status);
    let inner = inner(&raw)?;
    ensure!(inner.get("faultcode") == Some(&json!("Client")), "{inner}");
    ensure!(inner.get("faultstring").is_some_and(Value::is_string), "{inner}");
    ensure!(inner.get("debuginfo") == Some(&Value::Null), "{inner}");
    Ok(())
}

pub(crate) async fn a_microversion_outside_of_the_range_is_not_acceptable_and_the_response_has_the_range(
    lab: &Lab,
) -> anyhow::Result<()> {
    let raw = lab.raw("GET", "/v1/nodes", "1.999", None).await?;
    ensure!(raw.status == 406, "{}", raw.status);
    let inner = inner(&raw)?;
    ensure!(inner.get("code") == Some(&json!(406)), "{inner}");
    ensure!(
        inner.get("title").is_some() && inner.get("description").is_some(),
        "{inner}"
    );
    for header in ["minimum", "maximum"] {
        let name = format!("x-openstack-ironic-api-{header}-version");
        ensure!(raw.headers.contains_key(&name), "no {name}");
    }
    Ok(())
}

pub(crate) async fn unknown_paths_and_unknown_methods_have_different_errors(lab: &Lab) -> anyhow::Result<()> {
    let path = lab.raw("GET", "/v1/abacus", "1.110", None).await?;
    ensure!(path.status == 404, "{}", path.status);
    ensure!(inner(&path)?.get("code") == Some(&json!(404)), "{}", path.body);
    let uuid = lab.node().await?;
    let method = lab
        .raw("PUT", &format!("/v1/nodes/{uuid}"), "1.110", Some(json!({})))
        .await?;
    ensure!(method.status == 405, "{}", method.status);
    lab.remove(&uuid).await
}

pub(crate) async fn older_microversions_hide_a_newer_field_and_reject_it(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let path = format!("/v1/nodes/{uuid}");
    for (field, since) in [("disable_power_off", 95), ("instance_name", 104), ("health", 109)] {
        for (minor, shown) in [(since - 1, false), (since, true)] {
            let raw = lab.raw("GET", &path, &format!("1.{minor}"), None).await?;
            ensure!(raw.body.get(field).is_some() == shown, "{field} at 1.{minor}");
        }
    }
    let patch = json!([{"op": "add", "path": "/disable_power_off", "value": true}]);
    let older = lab.raw("PATCH", &path, "1.94", Some(patch.clone())).await?;
    ensure!(older.status == 406, "{}", older.status);
    let newer = lab.raw("PATCH", &path, "1.95", Some(patch)).await?;
    ensure!(newer.status == 200, "{}", newer.status);
    lab.remove(&uuid).await
}

pub(crate) async fn virtual_media_are_listed_since_their_microversion(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let path = format!("/v1/nodes/{uuid}/vmedia");
    for (version, status) in [("1.92", 404), ("1.93", 400)] {
        // Fake hardware has no drive: only the error differs.
        let raw = lab.raw("GET", &path, version, None).await?;
        ensure!(raw.status == status, "{} at {version}", raw.status);
    }
    // The finalizer of a DataImage depends on these words.
    let raw = lab.raw("GET", &path, "1.93", None).await?;
    let problem = inner(&raw)?;
    let text = problem.get("faultstring").and_then(Value::as_str).unwrap_or_default();
    ensure!(text.contains("does not support"), "{problem}");
    lab.remove(&uuid).await
}
