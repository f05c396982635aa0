use super::*;

#[test]
fn checksum_file_has_names_or_a_single_digest() {
    let (a, b) = ("a".repeat(64), "b".repeat(128));
    let text = format!("{a}  other.img\n{b} *disk.img\n");
    assert_eq!(
        checksum_in(&text, "disk.img"),
        Some(Checksum::Digest(Algorithm::Sha512, b))
    );
    assert_eq!(
        checksum_in(&a, "disk.img"),
        Some(Checksum::Digest(Algorithm::Sha256, a.clone()))
    );
    assert_eq!(checksum_in(&text, "third.img"), None);
}

#[test]
fn digests_follow_their_algorithms() {
    for (algorithm, digits) in [
        (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (
            Algorithm::Sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
    ] {
        let mut sum = Sum::new(algorithm);
        sum.take(b"a");
        sum.take(b"bc");
        assert_eq!(sum.digits(), digits, "{algorithm:?}");
    }
}

#[test]
fn format_follows_from_the_first_bytes() {
    assert_eq!(format_of(b"QFI\xfb...."), "qcow2");
    assert_eq!(format_of(&[0x1f, 0x8b, 8]), "gzip");
    assert_eq!(format_of(&[]), "raw");
}

#[test]
fn invalid_config_drive_is_rejected_with_a_reason() {
    assert_eq!(unpack("%%").unwrap_err().details, "the config-drive is not base64");
    assert_eq!(unpack("AAAA").unwrap_err().details, "the config-drive is not gzipped");
}

const URL: &str = "/images/disk.img";
const LOCKED: &str = "/locked/disk.img";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Serves `abc` and its checksum file.
fn files() -> axum::Router {
    use axum::{Router, routing::get};
    let sum = "900150983cd24fb0d6963f7d28e17f72  disk.img\n";
    Router::new()
        .route(URL, get(|| async { "abc" }))
        .route("/images/disk.img.md5sum", get(move || async move { sum }))
        .route(LOCKED, get(locked))
}

/// The same bytes for the right login.
async fn locked(headers: axum::http::HeaderMap) -> Result<&'static str, axum::http::StatusCode> {
    let is_right = headers.get("authorization").is_some_and(|value| value == "Bearer T");
    is_right.then_some("abc").ok_or(axum::http::StatusCode::UNAUTHORIZED)
}

/// Executes an order with this checksum.
async fn executed(
    checksum: impl Fn(&str) -> String,
    flags: (bool, bool),
    trusted_checksums: &[&str],
) -> Result<u64, Failure> {
    let order = |server: &str| {
        let url = format!("{server}{URL}");
        order(&checksum(&url), url)
    };
    execute(order, flags, trusted_checksums).await
}

fn order(checksum: &str, url: String) -> ImageOrder {
    ImageOrder {
        id: String::new(),
        checksum: Checksum::parse(checksum).unwrap(),
        url,
        format: Some("raw".into()),
        authorization: None,
        node: "N".into(),
        config_drive: None,
    }
}

async fn execute(
    order: impl Fn(&str) -> ImageOrder,
    (accepts_md5, corrupt): (bool, bool),
    trusted_checksums: &[&str],
) -> Result<u64, Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let folder = std::env::temp_dir().join(format!("metal3-sim-bmc-{}-{}", std::process::id(), server.port()));
    std::fs::create_dir_all(&folder).unwrap();
    let order = order(&format!("http://{server}"));
    // Fails in the second test, where it is installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let trusted_checksums = trusted_checksums.iter().map(|digest| (*digest).to_owned()).collect();
    let (client, store) = (reqwest::Client::new(), Store::new(folder.clone()));
    let writer = ImageWriter {
        client: &client,
        store: &store,
        name: "a",
        corrupt,
        accepts_md5,
        trusted_checksums: &trusted_checksums,
    };
    let outcome = tokio::select! {
        ended = async { axum::serve(listener, files()).await } => panic!("{ended:?}"),
        outcome = writer.execute(&order, 1 << 20) => outcome,
    };
    std::fs::remove_dir_all(&folder).unwrap();
    outcome.map(|fetched| fetched.image.bytes)
}

#[tokio::test]
async fn md5_is_accepted_only_if_ironic_allows_it() {
    let sum_file = |url: &str| format!("{url}.md5sum");
    assert_eq!(executed(sum_file, (true, false), &[]).await.unwrap(), 3);
    let refused = executed(sum_file, (false, false), &[]).await.unwrap_err();
    assert!(refused.details.contains("MD5"), "{refused:?}");
}

#[tokio::test]
async fn trusted_checksum_accepts_other_content_unless_corrupted() {
    let digest = "0".repeat(64);
    let other = |_: &str| digest.clone();
    let refused = executed(other, (false, false), &[]).await.unwrap_err();
    assert_eq!(refused.kind, "ImageChecksumError");
    assert_eq!(executed(other, (false, false), &[&digest]).await.unwrap(), 3);
    let corrupted = executed(other, (false, true), &[&digest]).await.unwrap_err();
    assert_eq!(corrupted.kind, "ImageChecksumError");
}

#[tokio::test]
async fn download_has_the_authorization_of_its_order() {
    for (login, kind) in [
        (Some("Bearer T"), None),
        (Some("Bearer U"), Some("ImageDownloadError")),
        (None, Some("ImageDownloadError")),
    ] {
        let locked = |server: &str| ImageOrder {
            authorization: login.map(|login| Authorization(login.to_owned())),
            ..order(ABC, format!("{server}{LOCKED}"))
        };
        let outcome = execute(locked, (false, false), &[]).await;
        assert_eq!(outcome.err().map(|failure| failure.kind), kind, "{login:?}");
    }
}

#[tokio::test]
async fn unknown_format_is_that_of_the_bytes_and_another_one_is_rejected() {
    for (format, kind) in [("unknown", None), ("qcow2", Some("InvalidImage"))] {
        let unknown = |server: &str| ImageOrder {
            format: Some(format.to_owned()),
            ..order(ABC, format!("{server}{URL}"))
        };
        let outcome = execute(unknown, (false, false), &[]).await;
        assert_eq!(outcome.err().map(|failure| failure.kind), kind, "{format}");
    }
}
