//! Login: HTTP basic authentication, or a session token.

use std::collections::VecDeque;

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use super::{Answer, Request, collection};

/// Real BMCs limit sessions and drop the oldest or refuse new ones; dropping tolerates clients that leak sessions.
const MOST_SESSIONS: usize = 16;

/// The login of all BMCs of a lab.
#[derive(Clone)]
pub struct Credentials {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Whether an `Authorization` header contains this login.
    #[must_use]
    pub fn admit(&self, authorization: Option<&str>) -> bool {
        let Some(encoded) = authorization.and_then(|header| header.strip_prefix("Basic ")) else {
            return false;
        };
        let expected = format!("{}:{}", self.username, self.password);
        STANDARD
            .decode(encoded.trim())
            .is_ok_and(|decoded| decoded == expected.as_bytes())
    }
}

/// 24 random bytes in hexadecimal, for a password or a token.
///
/// # Errors
/// When the system returns no random bytes.
pub fn secret() -> Result<String, ring::error::Unspecified> {
    let mut bytes = [0_u8; 24];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The open sessions of one BMC, oldest first.
#[derive(Debug, Default)]
pub struct Sessions {
    opened: u64,
    open: VecDeque<(String, String)>,
}

impl Sessions {
    pub(super) fn open(&mut self, credentials: &Credentials, body: &Value, refused: bool) -> Answer {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let known = text("UserName") == Some(&credentials.username) && text("Password") == Some(&credentials.password);
        if refused || !known {
            return Answer::error(401, "wrong user name or password");
        }
        let Ok(token) = secret() else {
            return Answer::error(500, "no randomness for a token");
        };
        self.opened += 1;
        let id = self.opened.to_string();
        if self.open.len() == MOST_SESSIONS {
            self.open.pop_front();
        }
        self.open.push_back((id.clone(), token.clone()));
        let location = format!("/redfish/v1/SessionService/Sessions/{id}");
        let body =
            json!({ "@odata.id": location, "@odata.type": "#Session.v1_3_0.Session", "Id": id, "Name": "Session" });
        Answer {
            status: 201,
            body: Some(body),
            location: Some(location),
            token: Some(token),
        }
    }

    pub(super) fn admit(&self, credentials: &Credentials, request: &Request<'_>) -> bool {
        match request.token {
            Some(token) => self.open.iter().any(|(_, open)| open == token),
            None => credentials.admit(request.authorization),
        }
    }

    pub(super) fn list(&self) -> Value {
        collection(
            "Session",
            "/redfish/v1/SessionService/Sessions",
            self.open.iter().map(|(id, _)| id.clone()),
        )
    }

    pub(super) fn close(&mut self, id: &str) -> Answer {
        let before = self.open.len();
        self.open.retain(|(open, _)| open != id);
        if self.open.len() < before {
            Answer::done()
        } else {
            Answer::error(404, "no such session")
        }
    }
}

pub(super) fn service() -> Value {
    json!({
        "@odata.id": "/redfish/v1/SessionService",
        "@odata.type": "#SessionService.v1_1_8.SessionService",
        "Id": "SessionService",
        "Name": "Session Service",
        "ServiceEnabled": true,
        "Sessions": { "@odata.id": "/redfish/v1/SessionService/Sessions" },
    })
}
