use std::path::PathBuf;

use futures::future::join_all;

use super::*;

/// A folder with a script that logs in, and the numbers of the processes that ran it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("metal3-program-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The configuration with this script.
    fn config(&self, script: &str) -> Config {
        let mut config = Config::new("https://192.0.2.1".parse().unwrap());
        let script = format!("echo $$ >> {}/runs; {script}", self.0.display());
        let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script], "interactiveMode": "Never" });
        config.auth_info.exec = Some(serde_json::from_value(exec).unwrap());
        config
    }

    fn runs(&self) -> Vec<u32> {
        let runs = std::fs::read_to_string(self.0.join("runs")).unwrap_or_default();
        runs.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

const HANGS: &str = "exec sleep 600";

fn is_alive(process: u32) -> bool {
    let state = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", &process.to_string()])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until this number of programs has run, and returns those that still do.
async fn alive(folder: &Folder, runs: usize) -> Vec<u32> {
    while folder.runs().len() < runs {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    folder.runs().into_iter().filter(|run| is_alive(*run)).collect()
}

#[tokio::test]
async fn programs_that_hang_run_one_at_a_time_and_end_at_their_deadline() {
    let (folder, programs) = (Folder::new("hangs"), Programs::default());
    let sessions = [0, 1].map(|_| programs.take(&mut folder.config(HANGS)).unwrap());
    let within = Duration::from_millis(700);
    let waiting = sessions
        .iter()
        .flat_map(|session| [(); 3].map(|()| session.login(within)));
    // All of them give up waiting before the program ends.
    let gone = timeout(Duration::from_millis(200), join_all(waiting)).await;
    assert!(gone.is_err());
    let both = async {
        let first = alive(&folder, 1).await;
        let second = alive(&folder, 2).await;
        (first, second)
    };
    let (first, second) = timeout(Duration::from_secs(20), both).await.unwrap();
    assert_eq!((first.len(), second.len()), (1, 1), "{first:?} {second:?}");
    let all_ended = async {
        while folder.runs().into_iter().any(is_alive) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), all_ended).await.unwrap();
    assert_eq!(folder.runs().len(), 2);
}

#[tokio::test]
async fn all_that_wait_get_the_failure_of_one_run() {
    let (folder, programs) = (Folder::new("fails"), Programs::default());
    let session = programs.take(&mut folder.config("echo a-token; exit 1")).unwrap();
    for failure in join_all([(); 5].map(|()| session.header())).await {
        let text = format!("{failure:?}");
        assert!(failure.is_err() && !text.contains("a-token"), "{text}");
    }
    assert_eq!(folder.runs().len(), 1);
    assert!(session.header().await.is_err());
    assert_eq!(folder.runs().len(), 2, "who asks later has another run");
}

#[tokio::test]
async fn logins_are_tokens_until_they_expire_or_certificates() {
    for (name, status, header, runs) in [
        ("token", json!({ "token": "a" }), Some("Bearer a"), 1),
        (
            "late",
            json!({ "token": "a", "expirationTimestamp": "2999-01-01T00:00:00Z" }),
            Some("Bearer a"),
            1,
        ),
        (
            "over",
            json!({ "token": "a", "expirationTimestamp": "2020-01-01T00:00:00Z" }),
            Some("Bearer a"),
            3,
        ),
        (
            "pair",
            json!({ "clientCertificateData": "c", "clientKeyData": "k" }),
            None,
            1,
        ),
    ] {
        let (folder, programs) = (Folder::new(name), Programs::default());
        let credential = json!({ "kind": "ExecCredential", "status": status });
        let mut config = folder.config(&format!("echo '{credential}'"));
        let session = programs.take(&mut config).unwrap();
        session.begin(&mut config, REFRESH).await.unwrap();
        for _ in 0..2 {
            let found = session.header().await.unwrap();
            assert_eq!(found.as_ref().and_then(|found| found.to_str().ok()), header, "{name}");
        }
        assert_eq!(folder.runs().len(), runs, "{name}");
        assert!(config.auth_info.exec.is_none());
        assert_eq!(config.auth_info.client_certificate_data.is_some(), name == "pair");
    }
}

/// A kubeconfig may have both: the client library uses the other one.
#[test]
fn program_next_to_another_login_is_not_used() {
    let folder = Folder::new("other");
    let mut config = folder.config(HANGS);
    config.auth_info.token = Some("a".to_owned().into());
    assert!(Programs::default().take(&mut config).is_none());
    assert!(config.auth_info.exec.is_some());
}
