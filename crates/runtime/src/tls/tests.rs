use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};
use tokio_util::sync::CancellationToken;

use super::server::connect;
use super::*;
use crate::metrics::Metrics;

/// A folder that is deleted with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("metal3-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> KeyPairFiles {
        KeyPairFiles::mounted_at(&self.0)
    }

    fn write(&self, pair: &Pair) {
        std::fs::write(self.0.join("tls.crt"), &pair.certificate).unwrap();
        std::fs::write(self.0.join("tls.key"), &pair.key).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

struct Pair {
    certificate: String,
    key: String,
}

fn pair() -> Pair {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    Pair {
        certificate: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

/// A client that trusts these certificates and supports these versions.
fn trusting(pairs: &[&Pair], versions: &[&'static SupportedProtocolVersion]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for pair in pairs {
        roots
            .add(CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap())
            .unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

fn metrics() -> (Metrics, crate::metrics::CertificateMetrics) {
    let metrics = Metrics::new();
    let certificates = metrics.servers().certificates();
    (metrics, certificates)
}

async fn certificates(folder: &Folder) -> Certificates {
    Certificates::read(folder.files(), metrics().1).await.unwrap()
}

async fn certificates_of_pair() -> (Pair, Certificates) {
    let (pair, folder) = (pair(), Folder::new());
    folder.write(&pair);
    (pair, certificates(&folder).await)
}

/// A handshake without a socket; returns the agreed parameters.
async fn agree(
    options: &TlsOptions,
    certificates: &Certificates,
    client: &TlsConnector,
) -> std::io::Result<client::TlsStream<tokio::io::DuplexStream>> {
    let (near, far) = duplex(64 * 1024);
    let acceptor = TlsAcceptor::from(Arc::new(options.server(Arc::new(certificates.clone())).unwrap()));
    let (agreed, _) = tokio::join!(client.connect(localhost(), near), acceptor.accept(far));
    agreed
}

/// Whether the server presents the certificate of this pair.
async fn shows(certificates: &Certificates, pair: &Pair) -> bool {
    agree(&TlsOptions::default(), certificates, &trusting(&[pair], &BOTH))
        .await
        .is_ok()
}

#[tokio::test]
async fn files_without_a_key_pair_are_rejected_with_the_file_name_and_without_content() {
    let (one, other) = (pair(), pair());
    let half = |text: &str| text.split_at(text.len() / 2).0.to_owned();
    // Certificate, key, and a part of the error.
    let rows = [
        (one.certificate.clone(), other.key.clone(), "use the certificate of"),
        (one.key.clone(), one.key.clone(), "find a certificate"),
        (one.certificate.clone(), one.certificate.clone(), "find a private key"),
        (String::new(), one.key.clone(), "find a certificate"),
        (half(&one.certificate), one.key.clone(), "find a certificate"),
        (one.certificate.clone(), half(&one.key), "find a private key"),
        (
            format!("{}{}", one.certificate, half(&other.certificate)),
            one.key.clone(),
            "find a certificate",
        ),
    ];
    for (certificate, key, expected) in rows {
        let folder = Folder::new();
        folder.write(&Pair { certificate, key });
        let fault = Certificates::read(folder.files(), metrics().1).await.unwrap_err();
        let said = fault.to_string();
        assert!(said.contains(expected) && said.contains("tls."), "{said}");
        assert!(!format!("{fault:?}").contains("BEGIN"), "{fault:?}");
    }
    let missing = Certificates::read(KeyPairFiles::mounted_at("/nonexistent"), metrics().1)
        .await
        .unwrap_err();
    assert_eq!(missing.to_string(), "read /nonexistent/tls.crt");
}

#[tokio::test]
async fn a_bad_renewal_is_counted_and_the_previous_key_pair_stays_in_use() {
    let (old, new) = (pair(), pair());
    let folder = Folder::new();
    folder.write(&old);
    let (metrics, counters) = metrics();
    let certificates = Certificates::read(folder.files(), counters).await.unwrap();
    // Half of a renewal: the chain is new, the key is old.
    std::fs::write(folder.files().certificate, &new.certificate).unwrap();
    assert!(matches!(
        certificates.reload().await,
        Err(KeyPairError::Mismatch { .. })
    ));
    assert!(shows(&certificates, &old).await && !shows(&certificates, &new).await);
    std::fs::write(folder.files().key, &new.key).unwrap();
    assert!(certificates.reload().await.unwrap());
    assert!(shows(&certificates, &new).await && !shows(&certificates, &old).await);
    assert!(!certificates.reload().await.unwrap(), "equal files are no change");
    let text = metrics.render();
    assert!(text.contains("certwatcher_read_certificate_total 4\n"), "{text}");
    assert!(text.contains("certwatcher_read_certificate_errors_total 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_swapped_link_above_the_files_is_noticed_within_the_period() {
    let (old, new) = (pair(), pair());
    let (first, second, mount) = (Folder::new(), Folder::new(), Folder::new());
    first.write(&old);
    second.write(&new);
    // As the kubelet mounts a Secret: the files are links through a link that is replaced in one step.
    let link = |to: &Path| {
        std::os::unix::fs::symlink(to, mount.0.join("..new")).unwrap();
        std::fs::rename(mount.0.join("..new"), mount.0.join("..data")).unwrap();
    };
    link(&first.0);
    for name in ["tls.crt", "tls.key"] {
        std::os::unix::fs::symlink(Path::new("..data").join(name), mount.0.join(name)).unwrap();
    }
    let certificates = certificates(&mount).await;
    let mut tasks = JoinSet::new();
    tasks.spawn(certificates.clone().reload_periodically());
    sleep(Duration::from_mins(1)).await;
    assert!(shows(&certificates, &old).await);
    link(&second.0);
    sleep(RELOAD_PERIOD + Duration::from_millis(1)).await;
    assert!(shows(&certificates, &new).await);
}

/// A server on loopback that answers `hello`, and `slow` after half a second; it signals the start of the slow request.
struct Serving {
    address: std::net::SocketAddr,
    busy: Arc<Notify>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

async fn serve(certificates: &Certificates) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let busy = Arc::new(Notify::new());
    let begun = Arc::clone(&busy);
    let slow = || async move {
        begun.notify_one();
        sleep(Duration::from_millis(500)).await;
        "slow"
    };
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/slow", get(slow));
    let server = Server::secure(listener, router, &TlsOptions::default(), certificates.clone()).unwrap();
    let (address, stop, mut tasks) = (server.address().unwrap(), CancellationToken::new(), JoinSet::new());
    tasks.spawn(server.run(stop.clone()));
    Serving {
        address,
        busy,
        stop,
        tasks,
    }
}

async fn open(
    serving: &Serving,
    client: &TlsConnector,
    tasks: &mut JoinSet<()>,
) -> std::io::Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(serving.address).await?;
    let stream = client.connect(localhost(), stream).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
    tasks.spawn(async move { drop(connection.await) });
    Ok(sender)
}

async fn ask(sender: &mut SendRequest<Empty<Bytes>>, path: &str) -> Result<Bytes, hyper::Error> {
    let request = Request::get(path)
        .header("host", "localhost")
        .body(Empty::new())
        .unwrap();
    sender.ready().await?;
    Ok(sender
        .send_request(request)
        .await?
        .into_body()
        .collect()
        .await?
        .to_bytes())
}

#[tokio::test]
async fn certificates_change_under_live_connections_without_a_failed_request() {
    let (old, new) = (pair(), pair());
    let folder = Folder::new();
    folder.write(&old);
    let certificates = certificates(&folder).await;
    let serving = Arc::new(serve(&certificates).await);
    let client = trusting(&[&old, &new], &BOTH);
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients = JoinSet::new();
    for fresh in [false, false, true, true] {
        let (serving, client, done, answered) = (serving.clone(), client.clone(), done.clone(), answered.clone());
        clients.spawn(async move {
            let mut connections = JoinSet::new();
            let mut sender = open(&serving, &client, &mut connections).await.unwrap();
            while !done.load(Ordering::Relaxed) {
                if fresh {
                    sender = open(&serving, &client, &mut connections).await.unwrap();
                }
                assert_eq!(ask(&mut sender, "/").await.unwrap(), "hello");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for round in 0..20 {
        let before = answered.load(Ordering::Relaxed);
        folder.write(if round % 2 == 0 { &new } else { &old });
        assert!(certificates.reload().await.unwrap());
        while answered.load(Ordering::Relaxed) < before + 20 {
            assert!(clients.try_join_next().is_none(), "a client gave up");
            sleep(Duration::from_millis(1)).await;
        }
    }
    done.store(true, Ordering::Relaxed);
    clients.join_all().await;
    // The last written pair is the old one.
    let mut connections = JoinSet::new();
    assert!(
        open(&serving, &trusting(&[&old], &BOTH), &mut connections)
            .await
            .is_ok()
    );
    assert!(
        open(&serving, &trusting(&[&new], &BOTH), &mut connections)
            .await
            .is_err()
    );
    serving.stop.cancel();
}

#[tokio::test]
async fn a_stopping_server_lets_running_requests_end_and_accepts_no_new_ones() {
    let only = pair();
    let folder = Folder::new();
    folder.write(&only);
    let mut serving = serve(&certificates(&folder).await).await;
    let client = trusting(&[&only], &BOTH);
    let mut connections = JoinSet::new();
    let mut busy = open(&serving, &client, &mut connections).await.unwrap();
    assert_eq!(ask(&mut busy, "/").await.unwrap(), "hello");
    let later = async {
        serving.busy.notified().await;
        serving.stop.cancel();
    };
    let (answer, ()) = tokio::join!(ask(&mut busy, "/slow"), later);
    assert_eq!(answer.unwrap(), "slow");
    timeout(Duration::from_secs(30), serving.tasks.join_next())
        .await
        .unwrap();
    assert!(open(&serving, &client, &mut connections).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_disconnected_after_ten_seconds() {
    let (_, certificates) = certificates_of_pair().await;
    let config = TlsOptions::default().server(Arc::new(certificates)).unwrap();
    for acceptor in [Some(TlsAcceptor::from(Arc::new(config))), None] {
        let plain = acceptor.is_none();
        let (mut near, far) = duplex(1024);
        let server = connect(far, acceptor, Router::new(), CancellationToken::new());
        if plain {
            near.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
        }
        let mut received = Vec::new();
        let both = async { tokio::join!(server, near.read_to_end(&mut received)) };
        assert!(timeout(Duration::from_secs(11), both).await.is_ok(), "plain: {plain}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_http2_connection_is_closed_within_a_minute() {
    // The preface of HTTP/2 and an empty frame of settings; then nothing, not even a reply to a ping.
    let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let (mut near, far) = duplex(1024);
    let server = connect(far, None, Router::new(), CancellationToken::new());
    near.write_all(hello).await.unwrap();
    let mut received = Vec::new();
    let both = async { tokio::join!(server, near.read_to_end(&mut received)) };
    let began = tokio::time::Instant::now();
    assert!(timeout(Duration::from_mins(1), both).await.is_ok());
    assert!(
        began.elapsed() >= Duration::from_secs(30),
        "an idle connection is closed too early"
    );
}

/// A client that lets the server send everything, and reads nothing.
#[tokio::test(start_paused = true)]
async fn answers_that_a_client_does_not_read_are_not_taken_from_their_handlers() {
    const REQUESTS: u8 = 20;
    let frames = Arc::new(AtomicU64::new(0));
    let taken = Arc::clone(&frames);
    let handler = move || {
        let taken = Arc::clone(&taken);
        let frames = futures::stream::iter(0..25).map(move |_| {
            taken.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(Bytes::from(vec![0; 16 << 10]))
        });
        async move { axum::body::Body::from_stream(frames) }
    };
    let (mut near, far) = duplex(4096);
    let server = connect(
        far,
        None,
        Router::new().route("/", get(handler)),
        CancellationToken::new(),
    );
    // Settings and an update, each with the largest window.
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff");
    sent.extend(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0");
    for request in 0..REQUESTS {
        // GET http://a/ in a frame that ends headers and stream.
        sent.extend([0, 0, 6, 1, 5, 0, 0, 0, 2 * request + 1]);
        sent.extend([0x82, 0x86, 0x84, 0x41, 1, b'a']);
    }
    let client = async {
        near.write_all(&sent).await.unwrap();
        sleep(Duration::from_secs(20)).await;
    };
    tokio::select! { () = server => {}, () = client => {} }
    let (frames, requests) = (frames.load(Ordering::Relaxed), u64::from(REQUESTS));
    assert!((requests..=3 * requests).contains(&frames), "{frames}");
}

fn offer(min: &str, max: &str, suites: &str) -> Result<TlsOptions, TlsOptionsError> {
    let suites: Vec<String> = suites.split(',').map(str::to_owned).collect();
    TlsOptions::from_flags(min, max, &suites)
}

#[tokio::test]
async fn versions_and_suites_are_those_of_the_flags() {
    const CHACHA: &str = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305";
    const AES: &str = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
    let (only, certificates) = certificates_of_pair().await;
    // Flags; the suite of a TLS 1.2 client, if any, and whether a TLS 1.3 client connects.
    let rows = [
        ("", "", "", Some(AES), true),
        ("VersionTLS12", "", "", Some(AES), true),
        ("VersionTLS10", "", "", Some(AES), true),
        ("VersionTLS13", "", "", None, true),
        ("TLS13", "TLS13", "", None, true),
        ("TLS12", "TLS12", "", Some(AES), false),
        (
            "VersionTLS12",
            "",
            CHACHA,
            Some("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
            true,
        ),
        (
            "VersionTLS12",
            "",
            " TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 ",
            Some(AES),
            true,
        ),
        ("VersionTLS12", "", "TLS_RSA_WITH_AES_128_CBC_SHA", None, true),
        ("VersionTLS12", "", "TLS_AES_128_GCM_SHA256", None, true),
    ];
    for (min, max, suites, older, newer) in rows {
        let options = offer(min, max, suites).unwrap();
        let agreed = agree(&options, &certificates, &trusting(&[&only], &[&TLS12]))
            .await
            .ok();
        let suite = agreed.and_then(|stream| stream.get_ref().1.negotiated_cipher_suite());
        let suite = suite.and_then(|suite| suite.suite().as_str());
        assert_eq!(suite, older, "{min} {max} {suites}");
        let agreed = agree(&options, &certificates, &trusting(&[&only], &[&TLS13])).await;
        assert_eq!(agreed.is_ok(), newer, "{min} {max} {suites}");
    }
}

#[test]
fn invalid_flags_are_rejected_with_their_valid_values() {
    assert_eq!(offer("TLS13", "TLS12", "").unwrap_err(), TlsOptionsError::Order);
    let unknown = offer("VersionTLS14", "", "").unwrap_err().to_string();
    assert!(
        unknown.contains("VersionTLS14") && unknown.contains("VersionTLS13"),
        "{unknown}"
    );
    let unknown = offer("", "", "ROT13").unwrap_err().to_string();
    assert!(
        unknown.contains("ROT13") && unknown.contains("TLS_AES_128_GCM_SHA256"),
        "{unknown}"
    );
    let none = offer("TLS12", "TLS12", "TLS_RSA_WITH_AES_128_CBC_SHA").unwrap_err();
    assert!(matches!(none, TlsOptionsError::NoSuite(_)));
    let some = offer("", "", "TLS_RSA_WITH_RC4_128_SHA,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").unwrap();
    assert_eq!(some.ignored(), ["TLS_RSA_WITH_RC4_128_SHA"]);
}

#[tokio::test]
async fn key_exchanges_are_those_of_the_flag() {
    let (only, certificates) = certificates_of_pair().await;
    let with_curves = |curves: &str| {
        let curves: Vec<String> = curves.split(',').map(str::to_owned).collect();
        TlsOptions::default().with_curves(&curves)
    };
    // Flag; the group that a client with all groups agrees on, and the groups that are not offered.
    let rows = [
        ("CurveP384", "secp384r1", ""),
        ("23", "secp256r1", ""),
        ("X25519MLKEM768,P384", "secp384r1", "X25519MLKEM768"),
        ("", "X25519", ""),
    ];
    for (flag, expected, ignored) in rows {
        let options = with_curves(flag).unwrap();
        let agreed = agree(&options, &certificates, &trusting(&[&only], &BOTH))
            .await
            .unwrap();
        let group = agreed.get_ref().1.negotiated_key_exchange_group().unwrap();
        assert_eq!(group.name().as_str().unwrap(), expected, "{flag}");
        assert_eq!(options.ignored().join(","), ignored);
    }
    assert_eq!(with_curves("P521").unwrap_err(), TlsOptionsError::NoCurve);
    assert_eq!(
        with_curves("P-256").unwrap_err(),
        TlsOptionsError::Curve("P-256".to_owned())
    );
}

#[tokio::test]
async fn both_generations_of_http_are_offered() {
    let (_, certificates) = certificates_of_pair().await;
    let config = TlsOptions::default().server(Arc::new(certificates)).unwrap();
    assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_no_answer_is_disconnected_within_six_minutes() {
    let (mut near, far) = duplex(1024);
    let router = Router::new().route("/", get(|| async { "x".repeat(1 << 20) }));
    let server = connect(far, None, router, CancellationToken::new());
    near.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    assert!(timeout(Duration::from_mins(6), server).await.is_ok());
    drop(near);
}

/// The name that a client with this certificate, if any, has in its requests.
async fn name_of_client(options: &TlsOptions, certificates: &Certificates, client: &TlsConnector) -> Option<String> {
    let name = |name: Option<axum::Extension<ClientName>>| async move {
        name.map_or_else(
            || "none".to_owned(),
            |axum::Extension(ClientName(name))| format!("name {name}"),
        )
    };
    let (near, far) = duplex(64 * 1024);
    let acceptor = TlsAcceptor::from(Arc::new(options.server(Arc::new(certificates.clone())).unwrap()));
    let mut tasks = JoinSet::new();
    tasks.spawn(connect(
        far,
        Some(acceptor),
        Router::new().route("/", get(name)),
        CancellationToken::new(),
    ));
    let stream = client.connect(localhost(), near).await.ok()?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tasks.spawn(async move { drop(connection.await) });
    let answer = ask(&mut sender, "/").await.ok()?;
    Some(String::from_utf8(answer.to_vec()).unwrap())
}

#[tokio::test]
async fn requests_carry_the_name_of_a_verified_client_certificate() {
    let (server, certificates) = certificates_of_pair().await;
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let client = |signed_by: &KeyPair| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params
            .signed_by(&key, &rcgen::Issuer::from_params(&ca, signed_by))
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(server.certificate.as_bytes()).unwrap())
            .unwrap();
        let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&BOTH)
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate.der().clone()], key);
        TlsConnector::from(Arc::new(config.unwrap()))
    };
    let (known, unknown) = (client(&ca_key), client(&KeyPair::generate().unwrap()));
    let without = trusting(&[&server], &BOTH);
    let requesting = TlsOptions::default().with_client_ca(ca_pem.as_bytes()).unwrap();
    let table = [
        (&requesting, &known, Some("name kube-apiserver")),
        (&requesting, &without, Some("none")),
        (&requesting, &unknown, None),
        (&TlsOptions::default(), &known, Some("none")),
    ];
    for (options, client, expected) in table {
        let found = name_of_client(options, &certificates, client).await;
        assert_eq!(found.as_deref(), expected);
    }
    for text in [
        "",
        "no PEM",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let error = TlsOptions::default().with_client_ca(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("--webhook-client-ca-file"), "{error}");
    }
}
