//! Reads requests from Ironic's log. Pure: other lines are skipped.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Whether it had a login; requests of agents do not.
    pub(super) by_login: bool,
    pub(super) method: String,
    /// With `_` for names and UUIDs, and without the query.
    pub(super) path: String,
    pub(super) status: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.status)
    }
}

impl Request {
    /// Whether it is a change by a client with a login.
    pub(super) fn is_order(&self) -> bool {
        self.by_login && self.method != "GET"
    }

    /// Whether it switches power or deletes the node. For a provision request the state change decides.
    pub(super) fn is_destructive(&self) -> bool {
        self.is_order() && (self.method == "DELETE" || self.path.ends_with("/states/power"))
    }

    /// Whether it is a listing of the change feed, which occurs at any time.
    pub(super) fn is_feed(&self) -> bool {
        self.by_login && self.method == "GET" && self.path == "/v1/nodes"
    }
}

pub(super) fn of(log: &str) -> impl Iterator<Item = Request> {
    log.lines().filter_map(request)
}

/// The changes of provision states, from and to.
pub(super) fn moves(log: &str) -> impl Iterator<Item = (&str, &str)> {
    log.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" moved to provision state \"")?;
        let (to, rest) = rest.split_once("\" from state \"")?;
        Some((rest.split_once('"')?.0, to))
    })
}

/// `... INFO ironic.api [None req-... admin - - - - -] 10.244.0.3 - GET /v1/nodes?x=y - 200 (1.2ms)`
fn request(line: &str) -> Option<Request> {
    let (_, rest) = line.split_once(" INFO ironic.api [")?;
    let (context, rest) = rest.split_once("] ")?;
    let mut words = rest.split(' ').skip(2);
    let (method, path) = (words.next()?, words.next()?);
    let status = words.nth(1)?;
    let path = path.split('?').next()?;
    let is_name = |part: &&str| part.contains('-') && part.len() > 30 || part.contains('~');
    let parts = path.split('/').map(|part| if is_name(&part) { "_" } else { part });
    Some(Request {
        by_login: context.contains(" admin "),
        method: method.to_owned(),
        path: parts.collect::<Vec<&str>>().join("/"),
        status: status.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "2026-11-22 02:01:29.877 643 INFO ironic.api [None req-12618995-4cbd-4bf5-9036-efddd617ad1b admin - - - \
                        - -] 10.244.0.3 - PUT /v1/nodes/306475c3-5c2c-4ba3-bbf0-2ab39df89169/states/power?x=1 - 202 (102.88ms)";

    #[test]
    fn request_has_method_path_and_status() {
        let parsed = request(LINE).unwrap();
        assert_eq!(parsed.to_string(), "PUT /v1/nodes/_/states/power 202");
        assert!(parsed.by_login);
        let agent = request(&LINE.replace(" admin ", " - ")).unwrap();
        assert!(!agent.by_login);
        assert_eq!(request("2026-11-22 INFO ironic.conductor [x] y"), None);
    }

    #[test]
    fn state_change_has_both_states() {
        let line = "2026-11-22 06:57:51.066 340 INFO ironic.conductor.task_manager [None req-1edb6870 admin - - - - -] Node 1cf3 \
                    moved to provision state \"manageable\" from state \"available\"; target provision state is \"None\"";
        let log = format!("{LINE}\n{line}\n");
        assert_eq!(moves(&log).collect::<Vec<_>>(), [("available", "manageable")]);
    }

    #[test]
    fn change_is_destructive_when_it_switches_power_or_deletes() {
        let node = "/v1/nodes/306475c3-5c2c-4ba3-bbf0-2ab39df89169";
        for (method, path, is_order, is_destructive) in [
            ("GET", "/states", false, false),
            ("PATCH", "", true, false),
            ("PUT", "/states/power", true, true),
            ("PUT", "/states/provision", true, false),
            ("DELETE", "", true, true),
        ] {
            let line = LINE.replace(&format!("PUT {node}/states/power"), &format!("{method} {node}{path}"));
            let parsed = request(&line).unwrap();
            assert_eq!(
                (parsed.is_order(), parsed.is_destructive()),
                (is_order, is_destructive),
                "{parsed}"
            );
        }
        assert!(!request(&LINE.replace(" admin ", " - ")).unwrap().is_order());
    }
}
