//! Who may look: browsers that followed the printed URL, at a name of this machine.
//!
//! The URL has a token that is good for one browser; its answer sets a cookie that no script reads and that no other site sends, and
//! leads to the page with a key that the page keeps for itself. Browsers send a cookie to all ports of an address; the key stays
//! with the page, so that a server on another port can look like the browser, and not act.
//! A page of another site that names this machine under its own name is refused by the name.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use http::header::{COOKIE, HOST};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Browsers that stay logged in. The one that came first is logged out for a further one.
const BROWSERS: usize = 32;

/// Gets the URL for a further browser.
type Announce = Box<dyn Fn(&str) + Send + Sync>;

/// The header with the key of a browser.
const KEY: &str = "x-console-key";

/// What a browser gets that followed the URL.
#[derive(Clone)]
pub(crate) struct Entry {
    /// The header that sets its cookie.
    pub(crate) cookie: String,
    pub(crate) key: String,
}

/// The secrets of a browser.
struct Browser {
    cookie: String,
    key: String,
}

/// The token of the next browser, and what the others have.
pub(crate) struct Access {
    address: SocketAddr,
    names: Vec<String>,
    state: Mutex<State>,
    announce: Announce,
}

#[derive(Default)]
struct State {
    token: String,
    browsers: VecDeque<Browser>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Access {
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn new(address: SocketAddr, announce: Announce) -> io::Result<Self> {
        let port = address.port();
        let state = State {
            token: random()?,
            browsers: VecDeque::new(),
        };
        Ok(Self {
            address,
            names: vec![address.to_string(), format!("localhost:{port}")],
            state: Mutex::new(state),
            announce,
        })
    }

    /// The URL for the next browser.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/login?token={}", self.address, self.state.lock().token)
    }

    /// Whether a request names this machine, and comes from no page of another site.
    pub(crate) fn is_for_this_machine(&self, headers: &HeaderMap) -> bool {
        let text = |value: &HeaderValue| value.to_str().ok().map(str::to_ascii_lowercase);
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(text);
        let is_named = host.is_some_and(|host| self.names.contains(&host)) && hosts.next().is_none();
        let site = headers.get("sec-fetch-site").and_then(text);
        let is_same = site.is_none_or(|site| ["same-origin", "none"].contains(&site.as_str()));
        is_named && is_same
    }

    /// Whether a browser followed the URL before.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        self.is_of(headers, |_| true)
    }

    /// Whether its page may act.
    pub(crate) fn may_act(&self, headers: &HeaderMap) -> bool {
        let key = headers.get(KEY).and_then(|key| key.to_str().ok());
        key.is_some_and(|key| self.is_of(headers, |browser| is_same(&browser.key, key)))
    }

    /// Whether a request has the cookie of a browser with this property.
    fn is_of(&self, headers: &HeaderMap, has: impl Fn(&Browser) -> bool) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut parts = cookies.flat_map(|value| value.split(';'));
        let known = &self.state.lock().browsers;
        parts.any(|part| {
            let found = part.trim().split_once('=').filter(|(found, _)| *found == name);
            found.is_some_and(|(_, value)| known.iter().any(|one| is_same(&one.cookie, value) && has(one)))
        })
    }

    /// Exchanges the token for a cookie and a key. Each token is good once.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn log_in(&self, token: &str) -> io::Result<Option<Entry>> {
        let (next, cookie, key) = (random()?, random()?, random()?);
        let mut state = self.state.lock();
        if !is_same(&state.token, token) {
            return Ok(None);
        }
        state.token = next;
        let name = self.cookie_name();
        let entry = Entry {
            cookie: format!("{name}={cookie}; HttpOnly; SameSite=Strict; Path=/"),
            key: key.clone(),
        };
        state.browsers.push_back(Browser { cookie, key });
        if state.browsers.len() > BROWSERS {
            state.browsers.pop_front();
        }
        drop(state);
        (self.announce)(&self.url());
        Ok(Some(entry))
    }

    /// Browsers send cookies to all ports: consoles on two ports have two.
    fn cookie_name(&self) -> String {
        format!("metal3-console-{}", self.address.port())
    }
}

/// 256 random bits.
fn random() -> io::Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that does not depend on where texts differ.
fn is_same(known: &str, found: &str) -> bool {
    let differences = known.bytes().zip(found.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    known.len() == found.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(SocketAddr::from(([127, 0, 0, 1], 8080)), Box::new(|_| {})).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn only_names_of_this_machine_and_its_own_pages_are_answered() {
        let access = access();
        for (pairs, is_answered) in [
            (&[("host", "127.0.0.1:8080")][..], true),
            (&[("host", "LOCALHOST:8080")], true),
            (&[("host", "127.0.0.1:8080"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "127.0.0.1:8080"), ("sec-fetch-site", "none")], true),
            (&[("host", "127.0.0.1:8080"), ("sec-fetch-site", "cross-site")], false),
            (&[("host", "127.0.0.1:8080"), ("sec-fetch-site", "same-site")], false),
            (&[("host", "127.0.0.1:8080"), ("host", "localhost:8080")], false),
            (&[("host", "127.0.0.1:80")], false),
            (&[("host", "127.0.0.1")], false),
            (&[("host", "evil.example:8080")], false),
            (&[], false),
        ] {
            assert_eq!(access.is_for_this_machine(&headers(pairs)), is_answered, "{pairs:?}");
        }
    }

    #[test]
    fn token_is_good_for_one_browser_and_the_next_one_gets_another() {
        let access = access();
        let url = access.url();
        let token = url.split_once("token=").unwrap().1.to_owned();
        assert!(access.log_in("").unwrap().is_none());
        let Entry { cookie, key } = access.log_in(&token).unwrap().unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        assert!(access.log_in(&token).unwrap().is_none());
        assert_ne!(access.url(), url);
        let value = cookie.split(';').next().unwrap();
        for (sent, is_known) in [
            (value.to_owned(), true),
            (format!("a=b; {value}"), true),
            (value.replace("-8080", "-8081"), false),
            (format!("{value}0"), false),
            ("metal3-console-8080=".to_owned(), false),
        ] {
            assert_eq!(access.is_known(&headers(&[("cookie", &sent)])), is_known, "{sent}");
        }
        let other = access.url().split_once("token=").unwrap().1.to_owned();
        let other = access.log_in(&other).unwrap().unwrap();
        for (key, may_act) in [(key.as_str(), true), (&other.key, false), ("", false)] {
            let sent = headers(&[("cookie", value), ("x-console-key", key)]);
            assert_eq!(access.may_act(&sent), may_act, "{key}");
        }
        assert!(!access.may_act(&headers(&[("cookie", value)])), "the cookie alone");
        assert!(!access.may_act(&headers(&[("x-console-key", &key)])), "the key alone");
        let shown = format!("{access:?}");
        assert!(!shown.contains(value.split_once('=').unwrap().1) && !shown.contains(&key));
    }

    #[test]
    fn number_of_browsers_is_limited() {
        let access = access();
        let log_in = || {
            let token = access.url().split_once("token=").unwrap().1.to_owned();
            access
                .log_in(&token)
                .unwrap()
                .unwrap()
                .cookie
                .split(';')
                .next()
                .unwrap()
                .to_owned()
        };
        let first = log_in();
        let mut last = String::new();
        for _ in 0..BROWSERS {
            last = log_in();
        }
        let known = |cookie: &str| access.is_known(&headers(&[("cookie", cookie)]));
        assert_eq!((known(&first), known(&last)), (false, true));
    }
}
