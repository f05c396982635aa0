use super::*;

#[test]
fn checksum_file_is_read_with_names_or_a_lone_digest() {
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
fn sums_are_those_of_their_algorithms() {
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
fn formats_are_told_by_their_first_bytes() {
    assert_eq!(format_of(b"QFI\xfb...."), "qcow2");
    assert_eq!(format_of(&[0x1f, 0x8b, 8]), "gzip");
    assert_eq!(format_of(&[]), "raw");
}

#[test]
fn config_drive_that_is_no_base64_gzip_is_refused_with_a_reason() {
    assert_eq!(unpack("%%").unwrap_err().details, "the config-drive is not base64");
    assert_eq!(unpack("AAAA").unwrap_err().details, "the config-drive is not gzipped");
}

const URL: &str = "/images/disk.img";

/// `abc`, with a file of its checksum beside it.
fn files() -> axum::Router {
    use axum::{Router, routing::get};
    let sum = "900150983cd24fb0d6963f7d28e17f72  disk.img\n";
    Router::new()
        .route(URL, get(|| async { "abc" }))
        .route("/images/disk.img.md5sum", get(move || async move { sum }))
}

/// What an order comes to whose image has this checksum.
async fn carried_out(
    checksum: impl Fn(&str) -> String,
    (takes_md5, corrupt): (bool, bool),
    believed: &[&str],
) -> Result<u64, Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let url = format!("http://{server}{URL}");
    let folder = std::env::temp_dir().join(format!("metal3-sim-bmc-{}-{}", std::process::id(), server.port()));
    std::fs::create_dir_all(&folder).unwrap();
    let order = ImageOrder {
        id: String::new(),
        checksum: Checksum::parse(&checksum(&url)).unwrap(),
        url,
        format: Some("raw".into()),
        node: "N".into(),
        config_drive: None,
    };
    // The second test finds it installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let believed = believed.iter().map(|digest| (*digest).to_owned()).collect();
    let (client, store) = (reqwest::Client::new(), Store::new(folder.clone()));
    let desk = Desk {
        client: &client,
        store: &store,
        name: "a",
        corrupt,
        takes_md5,
        believed: &believed,
    };
    let outcome = tokio::select! {
        ended = async { axum::serve(listener, files()).await } => panic!("{ended:?}"),
        outcome = desk.carry_out(&order, 1 << 20) => outcome,
    };
    std::fs::remove_dir_all(&folder).unwrap();
    outcome.map(|fetched| fetched.image.bytes)
}

#[tokio::test]
async fn md5_proves_an_image_only_where_ironic_lets_it() {
    let beside = |url: &str| format!("{url}.md5sum");
    assert_eq!(carried_out(beside, (true, false), &[]).await.unwrap(), 3);
    let refused = carried_out(beside, (false, false), &[]).await.unwrap_err();
    assert!(refused.details.contains("MD5"), "{refused:?}");
}

#[tokio::test]
async fn checksum_of_an_image_that_is_not_here_is_believed_where_that_was_said() {
    let digest = "0".repeat(64);
    let other = |_: &str| digest.clone();
    let refused = carried_out(other, (false, false), &[]).await.unwrap_err();
    assert_eq!(refused.kind, "ImageChecksumError");
    assert_eq!(carried_out(other, (false, false), &[&digest]).await.unwrap(), 3);
    let spoiled = carried_out(other, (false, true), &[&digest]).await.unwrap_err();
    assert_eq!(spoiled.kind, "ImageChecksumError");
}
