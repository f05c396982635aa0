//! The map: groups by one and by two labels, the keyboard, the charts, and the address that has all of it.

use anyhow::{Result, ensure};
use metal3_console::Console;
use serde_json::Value;

use crate::browser::Browser;
use crate::checked;

/// The square of the host whose BMC refuses the login.
const BROKEN: &str = "document.querySelector('.square[data-key=\"default/host-1\"]')";
const SQUARES: &str = "document.querySelectorAll('.square').length === 5";
const FOCUSED: &str = "document.activeElement.dataset.key";

pub(crate) fn check(browser: &mut Browser, console: &Console) -> Result<()> {
    let map = format!("http://{}/?view=map", console.address());
    browser.open(&map)?;
    browser.until("a square for each host", SQUARES)?;
    groups(browser)?;
    exact(browser)?;
    keyboard(browser, &map)?;
    charts(browser, &map)
}

/// Each group has the filter of its hosts and of no others, whatever their values are.
fn exact(browser: &mut Browser) -> Result<()> {
    let found = browser.value(include_str!("groups.js"))?;
    let is_right = found
        .pointer("/wrong")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty);
    let links = found.pointer("/links").and_then(Value::as_u64).unwrap_or_default();
    ensure!(is_right && links > 500, "groups with the filter of others: {found}");
    checked("groups: each has a filter that lists exactly its hosts, or no link");
    Ok(())
}

fn groups(browser: &mut Browser) -> Result<()> {
    // Racks are small places, so that they come first.
    browser.until(
        "a group for each rack",
        "document.querySelectorAll('.rack').length === 3",
    )?;
    browser.until(
        "colour and sign of who has to act",
        &format!("{BROKEN}.classList.contains('hardware') && {BROKEN}.textContent === '▲'"),
    )?;
    browser.until_named("link", "host-1: registering, a person at the machine has to act")?;
    for (select, value) in [("0", "label:zone"), ("1", "label:rack")] {
        let chosen = format!(
            "{{ const one = document.querySelectorAll('select')[{select}]; one.value = '{value}'; one.dispatchEvent(new Event('change')); }}"
        );
        browser.value(&chosen)?;
    }
    let nested = "document.querySelectorAll('.room').length === 2 && document.querySelectorAll('.rack').length === 5";
    browser.until("racks within zones", nested)?;
    browser.until(
        "the address",
        "location.search.includes('by=label%3Azone') && location.search.includes('then=label%3Arack')",
    )?;
    let address = browser.value("location.href")?;
    browser.open(address.as_str().unwrap_or_default())?;
    browser.until("the same for a colleague", nested)?;
    browser.value("document.querySelector('.room .place a').click()")?;
    browser.until(
        "the hosts of a zone in the list",
        "location.search.includes('zone%3D%3Dnorth') && document.querySelectorAll('.row').length === 2",
    )?;
    checked("map: a square for each host, in colour and sign; groups by one and by two labels; the address has them");
    Ok(())
}

fn keyboard(browser: &mut Browser, map: &str) -> Result<()> {
    browser.open(map)?;
    browser.until("the squares", SQUARES)?;
    let stops = browser.value("document.querySelectorAll('.square[tabindex=\"0\"]').length")?;
    ensure!(stops == 1, "the Tab key stops at {stops} squares");
    browser.value("document.querySelector('.square[tabindex=\"0\"]').focus()")?;
    for (key, host) in [
        ("ArrowRight", "host-2"),
        ("ArrowRight", "host-3"),
        ("PageDown", "host-5"),
        ("Home", "host-1"),
        ("End", "host-5"),
        ("ArrowUp", "host-4"),
        ("ArrowLeft", "host-3"),
        ("PageUp", "host-1"),
    ] {
        browser.press(key)?;
        browser.until(key, &format!("{FOCUSED} === 'default/{host}'"))?;
    }
    browser.until(
        "what the square stands for",
        "document.getElementById('pointed').innerText.includes('host-1 registering · Registration failed')",
    )?;
    browser.press("Enter")?;
    browser.until(
        "the page of the host",
        "location.search.includes('view=host') && location.search.includes('name=host-1')",
    )?;
    checked("map: arrows, Page Up, Page Down, Home and End lead through it, Enter opens a host");
    Ok(())
}

fn charts(browser: &mut Browser, map: &str) -> Result<()> {
    browser.open(map)?;
    browser.until("the bars", "document.querySelectorAll('.measure').length > 0")?;
    browser.value(
        "[...document.querySelectorAll('.measure')].find((one) => one.innerText.includes('registering')).click()",
    )?;
    browser.until(
        "a bar filters",
        "location.search.includes('state%3Aregistering') && document.querySelectorAll('.square').length === 1",
    )?;
    let label = browser.value("document.querySelector('.chart svg').getAttribute('aria-label')")?;
    let label = label.as_str().unwrap_or_default();
    ensure!(
        label.contains("now") && label.contains("1 a person at the machine has to act"),
        "{label}"
    );
    // Nothing changes for an hour.
    browser.value("{ const now = Date.now; Date.now = () => now() + 3_600_000; }")?;
    browser.until(
        "the chart goes on",
        "document.querySelector('.axis').innerText.startsWith('1h')",
    )?;
    checked(
        "map: hosts by state as bars that filter, and who has to act over time, which goes on, with the same in words",
    );
    Ok(())
}
