//! A large fleet: how quick it is next to a static page of the same size, and texts that are scripts.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::browser::Browser;
use crate::checked;
use crate::large;
use crate::views::{log_in, picture};
use crate::world::{SCRIPTED, console, fleet, scripted, set_error};

/// Milliseconds from the request of a static page to the frame after it.
pub(crate) const STATIC: &str = "new Promise((done) => { const look = () => document.readyState === 'complete' ? requestAnimationFrame(() => \
                      requestAnimationFrame(() => done(performance.now()))) : setTimeout(look, 2); look(); })";
/// The longest of some filters, in milliseconds to the frame after it.
pub(crate) const FILTERED: &str = "(async () => { const box = document.querySelector('input[type=search]'); let longest = 0; \
                        for (const text of ['r', 'r0', 'r01', '401', 'state:available', '-who:nothing', 'zone=north', '']) { \
                        const began = performance.now(); box.value = text; box.dispatchEvent(new Event('input')); \
                        await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); longest = Math.max(longest, performance.now() - began); } \
                        return longest; })()";

pub(crate) fn check(runtime: &Runtime, browser: &mut Browser, (count, pictures): (u32, Option<&Path>)) -> Result<()> {
    let cluster = runtime.block_on(fleet(count))?;
    let console = runtime.block_on(async { console(scripted(&cluster), None).await })?;
    log_in(browser, &console)?;
    let all = format!(
        "document.querySelector('h1')?.innerText.includes('{} hosts')",
        grouped(count)
    );
    browser.until("all hosts are listed", &all)?;
    scripts(browser, &console)?;
    let page = format!("http://{}/?view=fleet", console.address());
    let bytes = browser.value("fetch('/api/fleet').then((answer) => answer.text()).then((text) => text.length)")?;
    let bytes = usize::try_from(bytes.as_u64().unwrap_or_default())?;
    let plain = static_page(bytes, count)?;
    let (mut taken, mut still) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        browser.open(&page)?;
        browser.until("the page", "document.readyState === 'complete'")?;
        taken = taken.min(number(
            &browser.value(&shown("document.querySelectorAll('.row').length"))?,
        ));
        browser.open(&plain)?;
        still = still.min(number(&browser.value(STATIC)?));
    }
    browser.open(&page)?;
    browser.until("all hosts are listed", &all)?;
    let filtered = number(&browser.value(FILTERED)?);
    let memory = number(&browser.value("performance.memory.usedJSHeapSize / 1048576")?);
    println!(
        "fleet of {count}: first rows {taken:.0} ms, a static page of the same {} kB {still:.0} ms, ratio {:.2}; longest filter \
         {filtered:.0} ms, ratio {:.2}; {memory:.0} MB of objects in the tab",
        bytes / 1000,
        taken / still,
        filtered / still
    );
    ensure!(memory < 300.0, "{memory:.0} MB in the tab");
    let elements = number(&browser.value("document.querySelectorAll('.row').length")?);
    ensure!(elements < 120.0, "{elements} rows are elements");
    updates(runtime, browser, &cluster, still)?;
    large::map_follows(runtime, browser, &console, &cluster)?;
    large::check(browser, &console, count, pictures)?;
    browser.open(&format!("{page}&group=label%3Arack"))?;
    browser.until("groups", "document.querySelectorAll('.row.group').length > 0")?;
    picture(browser, pictures, "console-fleet.png")
}

/// Milliseconds from the request of the page to the frame after this is true.
pub(crate) fn shown(is_shown: &str) -> String {
    format!(
        "new Promise((done) => {{ const look = () => {is_shown} ? requestAnimationFrame(() => \
         requestAnimationFrame(() => done(performance.now()))) : setTimeout(look, 2); look(); }})"
    )
}

/// Texts of objects that a browser would run if they were taken for more than text.
fn scripts(browser: &mut Browser, console: &metal3_console::Console) -> Result<()> {
    let shows = |place: &str| {
        format!("document.querySelector('{place}')?.textContent.includes('<script>window.broken=1</script>')")
    };
    let host = format!("view=host&namespace=default&name={SCRIPTED}");
    for (view, place) in [
        ("view=fleet&q=onerror", ".row .host a"),
        ("view=fleet&group=label%3Anote&q=note", ".row.group b"),
        (&host, ".chain .message"),
        ("view=waits", "main"),
    ] {
        browser.open(&format!("http://{}/?{view}", console.address()))?;
        browser.until(view, &shows(place))?;
        let broken = browser.value("window.broken ?? document.querySelectorAll('img, main script').length")?;
        ensure!(broken == 0, "{view}: a text became an element");
    }
    checked("names, labels and messages that are scripts stay texts, in the fleet, the host and the waits");
    Ok(())
}

/// A change of a host reaches the page; `still` is the time of a static page.
fn updates(runtime: &Runtime, browser: &mut Browser, cluster: &metal3_sim_cluster::Cluster, still: f64) -> Result<()> {
    let mut fastest = f64::MAX;
    for number_of_update in 0..3 {
        let word = format!("update-{number_of_update}");
        let shown = format!(
            "document.querySelectorAll('.row').length === 1 && document.querySelector('input').value === '{word}'"
        );
        browser.filter(&word)?;
        browser.until("no host has the word", "document.querySelectorAll('.row').length === 0")?;
        let before = browser.value("performance.now()")?;
        runtime.block_on(set_error(cluster, "r000-u39", &word))?;
        browser.until("the host is shown", &shown)?;
        let after = browser.value("performance.now()")?;
        fastest = fastest.min(number(&after) - number(&before));
    }
    // A busy machine needs more time for each page.
    ensure!(
        fastest < 1000.0 + 2.0 * still,
        "a change reaches the page after {fastest:.0} ms"
    );
    println!("ok  a change of one host reaches the page, the fastest of 3 after {fastest:.0} ms");
    Ok(())
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// With the separators of the page.
fn grouped(count: u32) -> String {
    match (count / 1000, count % 1000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

/// Serves a page of this size with so many lines, and returns its URL.
pub(crate) fn static_page(bytes: usize, lines: u32) -> Result<String> {
    let mut page = "<!doctype html><meta charset=utf-8><title>static</title><body>".to_owned();
    let each = (bytes / usize::try_from(lines)?.max(1)).saturating_sub(30).max(1);
    for line in 0..lines {
        writeln!(page, "<p>{line:08} {}</p>", "word ".repeat(each / 5))?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let url = format!("http://{}/", listener.local_addr()?);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            let _ = stream.read(&mut request);
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(page.as_bytes()));
        }
    });
    Ok(url)
}
