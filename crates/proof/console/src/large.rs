//! Each view of a large fleet: how quick it is next to a static page of the same number of bytes.

use std::path::Path;

use anyhow::{Result, ensure};
use metal3_console::Console;
use metal3_sim_cluster::Cluster;
use tokio::runtime::Runtime;

use crate::browser::Browser;
use crate::quick::{FILTERED, STATIC, number, shown, static_page};
use crate::views::picture;
use crate::world::{RACK, set_error};

/// Bytes of a line of the static page: as many as a host of the fleet has.
const LINE: usize = 350;
/// The longest of some steps through the map, in milliseconds to the frame after it.
const STEPS: &str = "(async () => { document.querySelector('.square[tabindex=\"0\"]').focus(); let longest = 0; \
                     for (const key of ['ArrowRight', 'ArrowDown', 'PageDown', 'End', 'ArrowUp', 'Home']) { const began = performance.now(); \
                     document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })); \
                     await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); longest = Math.max(longest, performance.now() - began); } \
                     return longest; })()";

struct View {
    name: &'static str,
    page: String,
    /// Where its document is.
    document: String,
    /// True once it shows all.
    is_shown: String,
}

/// The views of a fleet of so many hosts.
fn views(count: u32) -> Vec<View> {
    let racks = count.saturating_sub(2).div_ceil(RACK);
    let view = |name: &'static str, page: &str, document: &str, is_shown: String| View {
        name,
        page: format!("view={page}"),
        document: format!("/api/{document}"),
        is_shown,
    };
    let at_least = |what: &str, wanted: u32| format!("document.querySelectorAll('{what}').length >= {wanted}");
    let host = "namespace=default&name=r000-u03";
    let cluster = "namespace=default&name=edge-000";
    vec![
        view("map", "map", "fleet", at_least(".square", count)),
        view(
            "map of racks in zones",
            "map&by=label%3Azone&then=label%3Arack",
            "fleet",
            at_least(".room .square", count),
        ),
        view("waits", "waits", "waits", at_least(".wait", 10)),
        view("clusters", "clusters", "clusters", at_least(".wait", racks)),
        view("pools", "pools", "pools", at_least(".pool", racks)),
        view(
            "host",
            &format!("host&{host}"),
            &format!("host?{host}"),
            at_least(".head .sign", 1),
        ),
        view(
            "cluster",
            &format!("cluster&{cluster}"),
            &format!("cluster?{cluster}"),
            at_least(".tree .node", 20),
        ),
    ]
}

pub(crate) fn check(browser: &mut Browser, console: &Console, count: u32, pictures: Option<&Path>) -> Result<()> {
    for view in views(count) {
        let page = format!("http://{}/?{}", console.address(), view.page);
        let bytes = browser.value(&format!(
            "fetch('{}').then((answer) => answer.text()).then((text) => text.length)",
            view.document
        ))?;
        let bytes = usize::try_from(bytes.as_u64().unwrap_or_default())?;
        let plain = static_page(bytes, u32::try_from(bytes / LINE)?.max(1))?;
        let (mut taken, mut still) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            browser.open(&page)?;
            browser.until(view.name, &view.is_shown)?;
            taken = taken.min(number(&browser.value(&shown(&view.is_shown))?));
            browser.open(&plain)?;
            still = still.min(number(&browser.value(STATIC)?));
        }
        browser.open(&page)?;
        browser.until(view.name, &view.is_shown)?;
        let elements = number(&browser.value("document.querySelectorAll('*').length")?);
        let memory = number(&browser.value("performance.memory.usedJSHeapSize / 1048576")?);
        println!(
            "{} at {count} hosts: shown after {taken:.0} ms, a static page of the same {} kB {still:.0} ms, ratio {:.2}; {elements} elements",
            view.name,
            bytes / 1000,
            taken / still
        );
        ensure!(memory < 300.0, "{}: {memory:.0} MB in the tab", view.name);
        if view.name == "map" {
            let (filtered, step) = (number(&browser.value(FILTERED)?), number(&browser.value(STEPS)?));
            println!(
                "map at {count} hosts: longest filter {filtered:.0} ms, longest step of the keyboard {step:.0} ms"
            );
            picture(browser, pictures, "console-map.png")?;
        }
    }
    Ok(())
}

/// A change of a host reaches its square, and the chart over time.
pub(crate) fn map_follows(
    runtime: &Runtime,
    browser: &mut Browser,
    console: &Console,
    cluster: &Cluster,
) -> Result<()> {
    browser.open(&format!("http://{}/?view=map", console.address()))?;
    let square = "document.querySelector('.square[data-key=\"default/r000-u38\"]')";
    let group = |name: &str| {
        format!("[...document.querySelectorAll('.place')].find((one) => one.firstChild.textContent === '{name}')")
    };
    let [first, none] = ["r000", "none"].map(group);
    browser.until(
        "a link for each rack, and none for hosts without one",
        &format!("{first}.querySelector('a') && !{none}.querySelector('a') && {none}.textContent.includes('2')"),
    )?;
    browser.until(
        "the square",
        &format!("{square} && !{square}.classList.contains('hardware')"),
    )?;
    let remembered =
        "(window.changes = parseInt(document.querySelector('.chart svg').getAttribute('aria-label'))) >= 0";
    let element = browser.value(&format!("(window.square = {square}) !== null && {remembered}"))?;
    ensure!(element == true, "no square");
    runtime.block_on(set_error(cluster, "r000-u38", "HTTP 401 from the BMC: login required"))?;
    browser.until(
        "the square, the number of its rack and the chart",
        &format!(
            "{square}.classList.contains('hardware') && {square} === window.square && \
             parseInt(document.querySelector('.chart svg').getAttribute('aria-label')) > window.changes"
        ),
    )?;
    crate::checked("map: a change of one host changes its square alone, and the chart over time");
    Ok(())
}
