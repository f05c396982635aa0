//! The login of the console ends while pages are open: they say so, stand still, and go on with the next login of the same user; what
//! one user read is not shown to another one.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::body::Body;
use http::{Request, Response, StatusCode};
use kube::Client;
use metal3_console::login::{Checked, Failure, Owner, Source};
use metal3_console::{Console, Options};
use metal3_domain::clock::SystemClock;
use metal3_sim_cluster::Cluster;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::{BoxError, ServiceExt as _, service_fn};

use crate::accessible::page;
use crate::browser::Browser;
use crate::checked;
use crate::views::{PHONE, WIDE, log_in};
use crate::world::{NAMESPACE, fleet, set_error};

/// A host that is in use, of the smallest fleet.
const HOST: &str = "r000-u00";
const ENDED: &str = "!document.getElementById('login').hidden";
const LIVE: &str = "document.getElementById('login').hidden && document.getElementById('link').textContent === 'live'";
const DURATION: &str = "document.querySelector('[data-since]').textContent";
/// What a page asks when it shows a host: the console finds the end then, and not within a minute.
const ASKED: &str = "fetch('/api/rights?namespace=elsewhere&name=host').then(() => true)";

/// The number of the login, and its user while it is accepted.
type Login = (u64, Option<&'static str>);

/// Logins that a test ends and renews.
struct Switch {
    cluster: Cluster,
    login: Arc<Mutex<Login>>,
    owner: Arc<Owner>,
    /// Whether lists of hosts wait.
    is_slow: Arc<AtomicBool>,
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Switch")
    }
}

impl Switch {
    fn now(&self) -> Login {
        *self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, user: Option<&'static str>) {
        let mut login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        *login = (login.0 + 1, user);
    }

    /// A client with the login as it is now.
    fn client(&self) -> Client {
        let (own, cluster, login) = (self.now(), self.cluster.clone(), Arc::clone(&self.login));
        let is_slow = Arc::clone(&self.is_slow);
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let now = *login.lock().unwrap_or_else(PoisonError::into_inner);
            let service = now.1.filter(|_| now == own).map(|user| cluster.service(user));
            let is_slow = Arc::clone(&is_slow);
            async move {
                while request.uri().path().contains("/baremetalhosts") && is_slow.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let Some(service) = service else {
                    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 401 });
                    let mut refused = Response::new(Body::from(status.to_string()));
                    *refused.status_mut() = StatusCode::UNAUTHORIZED;
                    return Ok::<_, BoxError>(refused);
                };
                Ok(service.oneshot(request).await?.map(Body::new))
            }
        });
        Client::new(Checked::new(service, "here", Arc::clone(&self.owner)), NAMESPACE)
    }
}

impl Source for Switch {
    fn look(&self) -> std::pin::Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(std::future::ready(self.now().0.to_string()))
    }

    fn connect(&self) -> std::pin::Pin<Box<dyn Future<Output = Result<Client, Failure>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(self.client())))
    }
}

pub(crate) fn check(runtime: &Runtime, browser: &mut Browser) -> Result<()> {
    let cluster = runtime.block_on(fleet(3))?;
    let logins = Arc::new(Switch {
        cluster: cluster.clone(),
        login: Arc::new(Mutex::new((1, Some("ann")))),
        owner: Arc::default(),
        is_slow: Arc::default(),
    });
    let console = runtime.block_on(open(&logins))?;
    log_in(browser, &console)?;
    let host = format!(
        "http://{}/?view=host&namespace={NAMESPACE}&name={HOST}",
        console.address()
    );
    browser.open(&host)?;
    browser.until(
        "the buttons",
        "document.querySelector('.act') && document.querySelector('[data-since]')",
    )?;
    goes_on(browser)?;
    end(browser, &logins)?;
    runtime.block_on(set_error(&cluster, HOST, "after the end"))?;
    stands_still(browser)?;
    for (scheme, (width, height)) in [("light", WIDE), ("dark", WIDE), ("light", PHONE), ("dark", PHONE)] {
        browser.look(width, height, scheme)?;
        page(browser, &format!("the end of the login, {width} pixels, {scheme}"))?;
    }
    browser.look(WIDE.0, WIDE.1, "light")?;
    renew(browser, &logins)?;
    browser.until(
        "what came since, and the buttons",
        "document.body.innerText.includes('after the end') && document.querySelector('.act')",
    )?;
    checked(
        "login: its end is said with the time and what to do, the page stands still, and goes on with the next login",
    );
    hidden(runtime, browser, &cluster)?;
    other(browser, &logins, &host)
}

async fn open(logins: &Arc<Switch>) -> Result<Console> {
    let options = Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        namespace: None,
        default_namespace: NAMESPACE.to_owned(),
        is_read_only: false,
        lab: None,
    };
    let source: Arc<dyn Source> = logins.clone();
    let console = Console::open_with(
        (source, logins.client()),
        Arc::new(SystemClock::start()),
        &options,
        |_| {},
    )
    .await?;
    console.listed().await;
    Ok(console)
}

fn end(browser: &mut Browser, logins: &Switch) -> Result<()> {
    logins.set(None);
    browser.value(ASKED)?;
    browser.until("the end is said", ENDED)?;
    let text = browser.text()?;
    for part in [
        "The login of the console has ended: the API server does not accept the login",
        "The page shows what was known on",
        "kubectl auth whoami",
    ] {
        ensure!(text.contains(part), "no {part:?} in {text}");
    }
    browser.until(
        "no buttons, and the line above",
        "!document.querySelector('.act') && document.getElementById('link').textContent.startsWith('nothing new since')",
    )?;
    Ok(())
}

/// A duration of the page now and three hours later, by the clock of the browser.
fn later(browser: &mut Browser) -> Result<(String, String)> {
    let shown = browser.value(&format!(
        "import('/assets/time.js').then(({{ tick }}) => {{
            const [own, shown] = [Date.now, () => (tick(), {DURATION})];
            const before = shown();
            Date.now = () => own() + 3 * 3600 * 1000;
            const after = shown();
            Date.now = own;
            tick();
            return [before, after];
        }})"
    ))?;
    let text = |at| shown.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    ensure!(!text(0).is_empty(), "no duration: {shown}");
    Ok((text(0), text(1)))
}

/// Nothing newer is shown, and no duration grows.
fn stands_still(browser: &mut Browser) -> Result<()> {
    let (before, after) = later(browser)?;
    ensure!(before == after, "{before} and then {after}");
    let text = browser.text()?;
    ensure!(!text.contains("after the end"), "{text}");
    Ok(())
}

/// Durations grow while the page is live.
fn goes_on(browser: &mut Browser) -> Result<()> {
    let (before, after) = later(browser)?;
    ensure!(before != after, "{before} three hours later, too");
    Ok(())
}

/// The login is renewed, and the page is as old as before until all is read again.
fn renew(browser: &mut Browser, logins: &Switch) -> Result<()> {
    logins.is_slow.store(true, Ordering::SeqCst);
    logins.set(Some("ann"));
    let reading = "document.getElementById('link').textContent.startsWith('reading again what was known at ')";
    browser.until(
        "the lists are read again",
        &format!("document.getElementById('login').hidden && {reading}"),
    )?;
    stands_still(browser)?;
    logins.is_slow.store(false, Ordering::SeqCst);
    browser.until("the login is renewed", LIVE)?;
    goes_on(browser)
}

/// A page that is hidden while a change waits in it reads nothing until it is seen again.
fn hidden(runtime: &Runtime, browser: &mut Browser, cluster: &Cluster) -> Result<()> {
    browser.value(
        "import('/assets/server.js').then(({ onBatch }) => {
            const own = window.fetch;
            window.asked = null;
            window.fetch = (...all) => (window.asked?.push(String(all[0])), own(...all));
            const stop = onBatch(() => {
                stop();
                window.asked = [];
                Object.defineProperty(document, 'hidden', { configurable: true, value: true });
                document.dispatchEvent(new Event('visibilitychange'));
            });
            return true;
        })",
    )?;
    runtime.block_on(set_error(cluster, HOST, "while it is hidden"))?;
    browser.until("the page is hidden", "document.hidden")?;
    // More than the pause of a page before it reads.
    let asked = browser.value("new Promise((done) => setTimeout(() => done(window.asked), 1000))")?;
    ensure!(asked == json!([]), "a hidden page asked for {asked}");
    browser.value("delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); true")?;
    browser.until(
        "what changed while it was hidden",
        "document.body.innerText.includes('while it is hidden')",
    )?;
    runtime.block_on(set_error(cluster, HOST, "after the end"))?;
    checked("login: a hidden page reads nothing, and all once it is seen again");
    Ok(())
}

/// Another user logs in: no view has anything of the first one, until that one logs in again.
fn other(browser: &mut Browser, logins: &Switch, host: &str) -> Result<()> {
    browser.value("document.querySelector('[data-action=pause]').click()")?;
    browser.until("the question", "document.querySelector('dialog[open]')")?;
    end(browser, logins)?;
    logins.set(Some("bob"));
    let said = "document.getElementById('login').innerText.includes('logs in as bob now, and this console was started as ann')";
    browser.until(
        "the other user is named, and no question is open",
        &format!("{said} && !document.querySelector('dialog')"),
    )?;
    for view in ["", "fleet", "map", "waits", "clusters", "pools"] {
        if !view.is_empty() {
            browser.value(&format!("document.querySelector('nav [data-view={view}]').click()"))?;
        }
        browser.until(
            view,
            "document.querySelector('main').innerText.includes('What was read before is not shown.')",
        )?;
        let text = browser.value("document.querySelector('main').innerHTML")?;
        let text = text.as_str().context("no page")?;
        ensure!(!text.contains("r000") && !text.contains("edge-"), "{view}: {text}");
    }
    page(browser, "another user logs in")?;
    browser.open(host)?;
    browser.until("the same after it is loaded again", said)?;
    let text = browser.value("document.querySelector('main').innerText")?;
    ensure!(!text.to_string().contains("after the end"), "{text}");
    logins.set(Some("ann"));
    browser.until("the first user again", LIVE)?;
    browser.until(
        "the host",
        "document.querySelector('.act') && document.body.innerText.includes('after the end')",
    )?;
    // Requests to a console that is gone are reported by the browser, as answers without a document are.
    browser.open("about:blank")?;
    browser.complaints.retain(|one| !one.contains("status of 409"));
    checked(
        "login: another user's is not used, and no view has anything that the first one read, until that one logs in again",
    );
    Ok(())
}
