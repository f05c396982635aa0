//! How a test waits for a host, in simulated time.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use tokio::time::sleep;

use crate::env::TestEnv;

/// Longer than any wait, in simulated time.
const TIMEOUT: Duration = Duration::from_secs(6 * 3_600);
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What was written when a waiting test looked: without a write, each object is as it was, and a test that waits for hours need not
/// read it each second.
#[derive(Debug, Default)]
pub(crate) struct Writes(Option<u64>);

impl Writes {
    /// Whether something was written since the last call. True at the first one.
    pub(crate) fn are_new(&mut self, env: &TestEnv) -> bool {
        let version = Some(env.cluster.version());
        std::mem::replace(&mut self.0, version) != version
    }
}

impl TestEnv {
    /// Waits until the condition holds for a host; `None`: it does not exist. The host is read again after a write only.
    pub(crate) async fn until(&self, number: u32, what: &str, condition: impl Fn(Option<&BareMetalHost>) -> bool) {
        let (mut waited, mut writes) = (Duration::ZERO, Writes::default());
        let mut host = None;
        loop {
            if writes.are_new(self) {
                host = self.get(number).await;
            }
            if condition(host.as_ref()) {
                return;
            }
            assert!(
                waited < TIMEOUT,
                "no {what} after {waited:?}: {}\nnode: {:#?}\nasked: {:#?}",
                serde_json::to_string_pretty(&host.map(|host| host.status)).unwrap(),
                self.node(number).await,
                self.interceptor.log().asked,
            );
            sleep(POLL_INTERVAL).await;
            waited += POLL_INTERVAL;
        }
    }

    pub(crate) async fn until_state(&self, number: u32, state: &str) {
        let is_in_state =
            |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.provisioning.state.to_string() == state);
        self.until(number, state, is_in_state).await;
    }
}
