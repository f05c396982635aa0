//! Whether people with a keyboard, a screen reader or little contrast can use a page: in each view, wide and narrow, light and dark.
//!
//! Of each page that is open: controls have a role and a name, ids are there once, headings have an order, each text has a contrast
//! of at least 4.5 by the colours that the browser computes, and the focus is seen.

use anyhow::{Result, ensure};
use metal3_console::Console;
use serde_json::Value;

use crate::browser::Browser;
use crate::checked;
use crate::views::{FITS, PHONE, WIDE};

const PROBLEMS: &str = include_str!("accessible.js");
/// Roles whose elements are nothing to a screen reader without a name.
const NAMED: &[&str] = &[
    "DisclosureTriangle",
    "alertdialog",
    "button",
    "checkbox",
    "combobox",
    "dialog",
    "grid",
    "heading",
    "image",
    "img",
    "link",
    "navigation",
    "region",
    "searchbox",
    "textbox",
];
/// Parts that take the focus from a script only, to be read from there on.
const BY_SCRIPT: &[&str] = &["RootWebArea", "main"];
/// The views, and an expression that is true once they show all.
const VIEWS: &[(&str, &str)] = &[
    ("view=fleet", "document.querySelectorAll('.row').length === 5"),
    (
        "view=fleet&group=label%3Arack&q=who%3Ahardware",
        "document.querySelectorAll('.row').length === 2",
    ),
    ("view=map", "document.querySelectorAll('.square').length === 5"),
    (
        "view=map&by=label%3Azone&then=label%3Arack",
        "document.querySelectorAll('.room .square').length === 5",
    ),
    (
        "view=host&namespace=default&name=host-1",
        "document.querySelector('.cure.hardware') && document.querySelector('.act')",
    ),
    ("view=waits", "document.querySelector('.waits.hardware')"),
    ("view=clusters", "document.querySelector('.wait')"),
    (
        "view=cluster&namespace=default&name=demo",
        "document.querySelector('.tree .node')",
    ),
    (
        "view=pools",
        "document.querySelector('h1')?.innerText.startsWith('Pools')",
    ),
];

/// Faults, each of which the check finds.
const FAULTS: &str = "{ const put = (name, text, change) => { const one = document.createElement(name); one.textContent = text; \
                      change(one); document.getElementById('main').append(one); }; put('p', 'pale', (one) => { one.style.color = '#999999'; }); \
                      put('p', 'dim', (one) => { one.style.opacity = '.3'; }); put('p', 'twice', (one) => { one.id = 'link'; }); \
                      put('h5', 'deep', () => {}); put('button', '', () => {}); put('button', 'unseen', (one) => { one.style.outline = 'none'; }); \
                      put('span', 'part', (one) => { one.tabIndex = 0; }); }";
const FOUND: &[&str] = &[
    "the id link is there 2 times",
    "a heading of level 5",
    "\"pale\": the contrast is 2",
    "\"dim\": the contrast is",
    "\"unseen\": the focus is not seen",
    "button has no name",
    "\"part\" takes the focus and has no role",
];

/// Opens all that is folded, and waits for what that makes.
const OPENED: &str = "document.querySelectorAll('details').forEach((one) => { one.open = true; }), \
                      new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(1)))))";

pub(crate) fn check(browser: &mut Browser, console: &Console) -> Result<()> {
    finds_faults(browser, console)?;
    let mut looked = 0;
    for (scheme, (width, height)) in [("light", WIDE), ("dark", WIDE), ("light", PHONE), ("dark", PHONE)] {
        browser.look(width, height, scheme)?;
        for (view, is_shown) in VIEWS {
            browser.open(&format!("http://{}/?{view}", console.address()))?;
            let is_live = "document.getElementById('link').textContent === 'live'";
            browser.until(view, &format!("{is_live} && ({is_shown})"))?;
            page(browser, &format!("{view}, {width} pixels, {scheme}"))?;
            looked += 1;
        }
        dialog(browser, console, &format!("the dialog, {width} pixels, {scheme}"))?;
        browser.open(&format!("http://{}/login?token=none", console.address()))?;
        browser.until("the page without a login", "document.querySelector('h1')")?;
        page(browser, &format!("the page without a login, {width} pixels, {scheme}"))?;
        looked += 2;
    }
    browser.look(WIDE.0, WIDE.1, "light")?;
    // The browser reports the answer to a request without a login.
    browser.complaints.retain(|one| !one.contains("status of 401"));
    checked(&format!(
        "{looked} pages at 1280 and 390 pixels, light and dark: they fit; roles, names, ids, headings; each contrast at least 4.5; the focus is seen"
    ));
    Ok(())
}

/// The question before an action.
fn dialog(browser: &mut Browser, console: &Console, what: &str) -> Result<()> {
    let host = format!("http://{}/?view=host&namespace=default&name=host-1", console.address());
    browser.open(&host)?;
    let pressed = "document.querySelector('.act') && (document.querySelector('.act').click(), true)";
    browser.until("a button", pressed)?;
    browser.until(what, "document.querySelector('dialog[open]')")?;
    page(browser, what)?;
    browser.press("Escape")?;
    browser.until("no question", "!document.querySelector('dialog')")?;
    Ok(())
}

/// A page with faults.
fn finds_faults(browser: &mut Browser, console: &Console) -> Result<()> {
    browser.open(&format!("http://{}/?view=fleet", console.address()))?;
    browser.until("the fleet", "document.querySelectorAll('.row').length === 5")?;
    browser.value(FAULTS)?;
    let found = problems(browser)?;
    for part in FOUND {
        ensure!(
            found.iter().any(|one| one.contains(part)),
            "{part:?} is not found: {found:#?}"
        );
    }
    Ok(())
}

/// Checks the page that is open, with all that can be opened on it.
pub(crate) fn page(browser: &mut Browser, what: &str) -> Result<()> {
    let problems = problems(browser)?;
    ensure!(problems.is_empty(), "{what}: {problems:#?}");
    let fits = browser.value(FITS)?;
    ensure!(fits == true, "{what}: the page is wider than its window");
    Ok(())
}

fn problems(browser: &mut Browser) -> Result<Vec<String>> {
    browser.value(OPENED)?;
    // What a script focuses after a key looks as if the key had led there.
    browser.press("Shift")?;
    let mut all: Vec<String> = serde_json::from_value(browser.value(PROBLEMS)?)?;
    let nodes = browser.tree()?;
    ensure!(nodes.len() > 3, "the accessibility tree is empty");
    all.extend(nodes.iter().filter_map(problem));
    Ok(all)
}

/// What is wrong with a node of the accessibility tree.
fn problem(node: &Value) -> Option<String> {
    let text = |at: &str| node.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let (role, name) = (text("/role/value"), text("/name/value").trim());
    let properties = node.pointer("/properties").and_then(Value::as_array);
    let is_focusable = properties.into_iter().flatten().any(|property| {
        property.pointer("/name").and_then(Value::as_str) == Some("focusable")
            && property.pointer("/value/value").and_then(Value::as_bool) == Some(true)
    });
    let needs_name = NAMED.contains(&role) || is_focusable && !BY_SCRIPT.contains(&role);
    if needs_name && name.is_empty() {
        return Some(format!("{role} has no name: {node}"));
    }
    let has_no_role = ["", "generic", "none", "GenericContainer"].contains(&role);
    (is_focusable && has_no_role).then(|| format!("{name:?} takes the focus and has no role"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(role: &str, name: &str, is_focusable: bool) -> Value {
        json!({ "role": { "value": role }, "name": { "value": name },
            "properties": [{ "name": "focusable", "value": { "value": is_focusable } }] })
    }

    #[test]
    fn controls_need_a_role_and_a_name() {
        for (role, name, is_focusable, is_wrong) in [
            ("button", "Power off", true, false),
            ("button", " ", true, true),
            ("image", "", false, true),
            ("generic", "text", true, true),
            ("generic", "", false, false),
            ("row", "", true, true),
            ("main", "", true, false),
        ] {
            assert_eq!(
                problem(&node(role, name, is_focusable)).is_some(),
                is_wrong,
                "{role} {name}"
            );
        }
    }
}
