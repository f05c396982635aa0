//! The embedded pages. They refer to nothing else.

use axum::body::Body;
use http::{Response, StatusCode};

use super::headers::answer;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal: $kind:ident,)*) => {
        /// Paths, content types and texts.
        const FILES: &[(&str, &str, &str)] = &[
            $((concat!("/assets/", $name), $kind, include_str!(concat!("../../assets/", $name))),)*
        ];
    };
}

files! {
    "style.css": CSS,
    "icon.svg": IMAGE,
    "action.js": SCRIPT,
    "app.js": SCRIPT,
    "address.js": SCRIPT,
    "chain.js": SCRIPT,
    "charts.js": SCRIPT,
    "cluster.js": SCRIPT,
    "counts.js": SCRIPT,
    "document.js": SCRIPT,
    "dom.js": SCRIPT,
    "filter.js": SCRIPT,
    "fleet.js": SCRIPT,
    "groups.js": SCRIPT,
    "host.js": SCRIPT,
    "list.js": SCRIPT,
    "map.js": SCRIPT,
    "past.js": SCRIPT,
    "pools.js": SCRIPT,
    "server.js": SCRIPT,
    "time.js": SCRIPT,
    "waits.js": SCRIPT,
}

const PAGE: &str = include_str!("../../assets/index.html");
const ICON: &str = include_str!("../../assets/icon.svg");
const LOGGED_IN: &str = include_str!("../../assets/logged-in.html");
const LOGGED_OUT: &str = include_str!("../../assets/logged-out.html");

/// The page, which shows all views.
pub(super) fn page() -> Response<Body> {
    answer(StatusCode::OK, HTML, PAGE)
}

/// The page that leads to it, with the key after the `#`, which no browser sends. A redirection would not get the cookie in a browser that followed a link of another program.
pub(super) fn logged_in(key: &str) -> Response<Body> {
    answer(StatusCode::OK, HTML, LOGGED_IN.replace("@key@", key))
}

/// The page for a browser without the cookie.
pub(super) fn logged_out() -> Response<Body> {
    answer(StatusCode::UNAUTHORIZED, HTML, LOGGED_OUT)
}

/// The icon, for all browsers.
pub(super) fn icon() -> Response<Body> {
    answer(StatusCode::OK, IMAGE, ICON)
}

/// One file of the page.
pub(super) fn file(path: &str) -> Option<Response<Body>> {
    let (_, kind, text) = FILES.iter().find(|(name, ..)| *name == path)?;
    Some(answer(StatusCode::OK, kind, *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strict headers would block what these do.
    #[test]
    fn pages_have_nothing_inline_and_nothing_from_elsewhere() {
        let pages = [PAGE, LOGGED_IN, LOGGED_OUT].map(|text| ("page", HTML, text));
        for (name, kind, text) in FILES.iter().copied().chain(pages) {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
                "https:",
                "style=\"",
                "onclick=",
            ] {
                assert!(!text.contains(word), "{name}: {word}");
            }
            assert!(kind == IMAGE || !text.contains("http:"), "{name}");
            assert!(!text.contains("<script>") && !text.contains("<style"), "{name}");
        }
    }

    #[test]
    fn each_imported_file_is_embedded() {
        for (name, _, text) in FILES {
            let imported = text
                .lines()
                .filter_map(|line| line.split_once(" from \"./")?.1.split('"').next());
            for import in imported {
                assert!(file(&format!("/assets/{import}")).is_some(), "{name}: {import}");
            }
        }
        for part in PAGE.split(['"']).filter(|part| part.starts_with("/assets/")) {
            assert!(file(part).is_some(), "{part}");
        }
    }
}
