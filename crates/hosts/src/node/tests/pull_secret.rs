//! Logins to registries, and which of them a deployment sends.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use metal3_api::metal3::v1alpha1::Image;
use metal3_domain::image::ImageFields;
use metal3_ironic::calls::patch::Patch;
use serde_json::{Value, json};

use super::super::{Instance, PullSecret, PullSecretError};
use super::record::{Record, lines};
use super::{PASSWORD, UID, settings, with_status};

const URL: &str = "oci://registry.example/team/os:v1";

fn values(key: &str, text: &str) -> BTreeMap<String, ByteString> {
    BTreeMap::from([(key.to_owned(), ByteString(text.as_bytes().to_vec()))])
}

fn read(values: &BTreeMap<String, ByteString>, version: &str) -> Result<PullSecret, PullSecretError> {
    let image = ImageFields {
        url: URL,
        ..ImageFields::default()
    };
    PullSecret::of(values, version, &image.registry_image().unwrap())
}

fn with_auths(auths: Value) -> BTreeMap<String, ByteString> {
    values(".dockerconfigjson", &json!({ "auths": auths }).to_string())
}

#[test]
fn login_of_the_registry_is_sent_in_the_form_that_ironic_reads() {
    let login = |text: &str| json!({ "auth": STANDARD.encode(text) });
    let own = json!({ "registry.example": { "username": "u", "password": "p:w" } });
    for (found, expected) in [
        (with_auths(own.clone()), "u:p:w"),
        (values(".dockercfg", &own.to_string()), "u:p:w"),
        (with_auths(json!({ "registry.example": login("u:pw") })), "u:pw"),
        (
            with_auths(json!({ "https://registry.example/v1/": login("u:pw\0\0") })),
            "u:pw",
        ),
        (
            with_auths(json!({ "registry.example": { "identitytoken": "t", "username": "u", "password": "p" } })),
            ":t",
        ),
        (
            with_auths(
                json!({ "registry.example": login("u:pw"), "other.example": login("o:o"), "registry.example/team": login("t:pw"),
                "registry.example/te": login("x:x") }),
            ),
            "t:pw",
        ),
        // Of two keys for one registry that without a scheme is the present one.
        (
            with_auths(json!({ "https://registry.example/v2/": login("old:pw"), "registry.example": login("u:pw") })),
            "u:pw",
        ),
        (
            with_auths(json!({ "registry.example": login("u:pw"), "registry.example/team/os": {} })),
            "u:pw",
        ),
    ] {
        assert_eq!(read(&found, "7").unwrap().expose(), expected);
    }
}

#[test]
fn secret_without_the_login_is_rejected_without_showing_it() {
    let canary = |text: &str| json!({ "auth": text, "email": PASSWORD });
    let helped = json!({ "credHelpers": { "registry.example": PASSWORD } }).to_string();
    let stored = json!({ "credsStore": PASSWORD }).to_string();
    // As docker writes it after a login.
    let emptied = json!({ "auths": { "registry.example": {} }, "credsStore": PASSWORD }).to_string();
    for (found, words) in [
        (
            values("password", PASSWORD),
            "has neither \".dockerconfigjson\" nor \".dockercfg\"",
        ),
        (values(".dockerconfigjson", PASSWORD), "does not contain logins"),
        (values(".dockercfg", "[]"), "does not contain logins"),
        (
            values(".dockerconfigjson", &helped),
            "names a program that knows the login to registry.example",
        ),
        (values(".dockerconfigjson", &stored), "names a program"),
        (values(".dockerconfigjson", &emptied), "names a program"),
        (
            with_auths(json!({ "other.example": canary("") })),
            "has no login to registry.example",
        ),
        (with_auths(json!({})), "has no login to registry.example"),
        (
            with_auths(json!({ "registry.example": canary(PASSWORD) })),
            "does not contain logins",
        ),
        (
            with_auths(json!({ "registry.example": canary("") })),
            "does not contain logins",
        ),
        (
            with_auths(json!({ "registry.example": canary(&STANDARD.encode("user")) })),
            "does not contain logins",
        ),
        (
            with_auths(json!({ "registry.example": canary(&STANDARD.encode("u:a\nb")) })),
            "does not contain logins",
        ),
    ] {
        let error = read(&found, "7").unwrap_err();
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    }
    let login = read(
        &with_auths(json!({ "registry.example": { "username": "u", "password": PASSWORD } })),
        "7",
    )
    .unwrap();
    assert!(!format!("{login:?}").contains(PASSWORD));
}

fn instance(url: &str) -> Instance {
    let image = json!({ "url": url, "checksum": (url.starts_with("http")).then(|| "0".repeat(64)) });
    let host = with_status(json!({}), &json!({}));
    let image: Image = serde_json::from_value(image).unwrap();
    Instance::of(&host, &image.into(), &settings()).unwrap()
}

fn login(password: &str, version: &str) -> PullSecret {
    let logins = json!({ "registry.example": { "username": "u", "password": password } });
    read(&with_auths(logins), version).unwrap()
}

fn about_login(patch: &Patch) -> Vec<String> {
    let is_about = |line: &String| line.contains("image_pull_secret") || line.contains("metal3_image_login");
    lines(patch).into_iter().filter(is_about).collect()
}

#[test]
fn login_is_sent_once_for_each_version_of_its_secret() {
    let image = instance(URL);
    let mut record = Record::new(&json!({ "provision_state": "available" }));
    let (first, second) = (login("a", "7"), login("b", "8"));
    let sent = |password: &str, login: &PullSecret| {
        [
            format!("/instance_info/image_pull_secret: \"u:{password}\""),
            format!("/instance_info/metal3_image_login: \"{}\"", login.identity()),
        ]
    };
    let patch = image.deployed_from(Some(&first), &record.shown()).patch;
    assert_eq!(about_login(&patch), sent("a", &first));
    record = record.patched(patch);
    assert!(image.deployed_from(Some(&first), &record.shown()).patch.is_empty());
    // Ironic shows neither login, so their versions are compared.
    let patch = image.deployed_from(Some(&second), &record.shown()).patch;
    assert_eq!(about_login(&patch), sent("b", &second));
    record = record.patched(patch);
    // An adoption fetches no image and reads no Secret.
    assert!(image.changes(&record.shown()).patch.is_empty());
    // The registry needs no login any more, or the image is from elsewhere.
    let removed = ["/instance_info/image_pull_secret", "/instance_info/metal3_image_login"];
    assert_eq!(about_login(&image.deployed_from(None, &record.shown()).patch), removed);
    let elsewhere = instance("http://192.0.2.9/os.img");
    assert_eq!(about_login(&elsewhere.changes(&record.shown()).patch), removed);
    assert_eq!(
        about_login(&elsewhere.deployed_from(Some(&first), &record.shown()).patch),
        removed
    );
}

/// Ironic shows neither login, and both are from one version of one Secret.
#[test]
fn login_to_another_registry_is_sent_when_the_image_changes_before_its_deployment() {
    let logins = with_auths(json!({
        "registry.example": { "username": "u", "password": "a" }, "other.example": { "username": "u", "password": "b" },
    }));
    let login = |url| {
        let image = ImageFields {
            url,
            ..ImageFields::default()
        };
        PullSecret::of(&logins, "7", &image.registry_image().unwrap()).unwrap()
    };
    const OTHER: &str = "oci://other.example/os";
    let record = Record::new(&json!({ "provision_state": "available" }));
    let patch = instance(URL).deployed_from(Some(&login(URL)), &record.shown()).patch;
    let record = record.patched(patch);
    let patch = instance(OTHER)
        .deployed_from(Some(&login(OTHER)), &record.shown())
        .patch;
    assert!(about_login(&patch)[0].ends_with("\"u:b\""), "{:?}", about_login(&patch));
}

#[test]
fn image_of_a_registry_is_written_as_the_go_manager_writes_it_and_recognized_after_its_deployment() {
    let image = instance("OCI://registry.example/team/os:v1");
    let found = json!({ "image_checksum": "ab", "image_disk_format": "raw", "image_os_hash_algo": "sha256" });
    let node = Record::new(&json!({ "provision_state": "available", "instance_info": found })).shown();
    let patch = lines(&image.deployed_from(None, &node).patch);
    for line in [
        r#"/instance_info/image_source: "oci://registry.example/team/os:v1""#,
        "/instance_info/image_disk_format",
        "/instance_info/image_checksum",
        "/instance_info/image_os_hash_algo",
    ] {
        assert!(patch.iter().any(|found| found == line), "{line}: {patch:?}");
    }
    let active = |info: Value| {
        Record::new(&json!({ "provision_state": "active", "instance_uuid": UID, "instance_info": info })).shown()
    };
    // Ironic adds what it found in the registry.
    let by_go = json!({ "image_source": URL, "image_checksum": "ab", "image_disk_format": "raw" });
    assert!(image.is_written_on(&active(by_go)));
    assert!(!image.is_written_on(&active(json!({ "image_source": "oci://registry.example/team/os:v2" }))));
    assert!(!image.is_live_iso());
}
