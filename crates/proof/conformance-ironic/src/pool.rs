//! The machines of a running labhosts, reached through its control endpoint.

use std::path::Path;

use metal3_sim_bmc::endpoint::{Endpoint, Place};
use serde_json::Value;

/// The machines of a running labhosts.
#[derive(Debug)]
pub struct Pool {
    pub(crate) endpoint: Endpoint,
    http: reqwest::Client,
}

impl Pool {
    /// Reads the endpoint file of labhosts.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(file: &Path) -> anyhow::Result<Self> {
        let endpoint: Endpoint = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let pem = std::fs::read(&endpoint.ca)?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            .build()?;
        Ok(Self { endpoint, http })
    }

    pub(crate) async fn ask(&self, method: &str, url: String, body: &Value) -> anyhow::Result<Vec<u8>> {
        let Endpoint { username, password, .. } = &self.endpoint;
        let request = self.http.request(method.parse()?, url);
        let request = request.basic_auth(username, Some(password));
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await?.error_for_status()?;
        Ok(answer.bytes().await?.into())
    }

    pub(crate) fn control(&self, entry: &Place, rest: &str) -> String {
        format!("{}/lab/machines/{}{rest}", self.endpoint.control_url, entry.number)
    }
}
