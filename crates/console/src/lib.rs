//! The console: pages about a fleet, for a person with a kubeconfig.
//!
//! - `objects`: what was read; `shared` answers questions from it. One watch for each kind fills it (`follow`), with the rights of the
//!   kubeconfig: pages and viewers cause no requests.
//! - `fleet`, `host`, `about`: the documents that pages show; the words are those of `metal3_explain`.
//! - `actions`: what a viewer can do about a host; `acting` does it, with the rights of the kubeconfig. [`lab`]: simulated machines,
//!   which a page may break and mend.
//! - [`login`]: the login of the kubeconfig, which may end and begin again while pages are open.
//! - `server`: HTTP on loopback: who may look, headers, files, documents, actions, and the stream of changes (`changes`).
//!
//! Limits: it changes hosts only, and reads no Secret. Invariants: nothing is served without the cookie that the printed URL grants;
//! what may not be read is named, and is never shown as absent; texts of objects reach a page as text; an action holds for the
//! version of the host that it was compared with; once the login has ended, pages say so, and since when what they show is old.
#![warn(missing_docs)]

mod about;
mod acting;
mod actions;
mod arguments;
mod changes;
mod fleet;
mod follow;
mod host;
mod kinds;
pub mod lab;
pub mod login;
mod objects;
mod server;
mod shared;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;
use metal3_domain::clock::Clock;
use metal3_explain::text::printable_text;
use tokio::task::JoinSet;

pub use arguments::{Arguments, USAGE, parse};

use acting::Acting;
use changes::Changes;
use lab::Lab;
use login::{Fixed, Keeper, Source};
use server::Pages;
use server::access::Access;
use shared::Shared;

/// What a console shows, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address to listen on, of loopback.
    pub address: SocketAddr,
    /// The only namespace to read; without one all, or that of the kubeconfig if not all may be read.
    pub namespace: Option<String>,
    /// The namespace of the kubeconfig.
    pub default_namespace: String,
    /// Whether pages change nothing.
    pub is_read_only: bool,
    /// The machines, if they are simulated.
    pub lab: Option<Arc<dyn Lab>>,
}

/// What a console says to the person who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The URL of a further browser, once the one before is used.
    NextUrl(&'a str),
    /// What was done from a page, with its time and result.
    Action(&'a str),
    /// That the login has ended, or has begun again.
    Login(&'a str),
}

/// A text in one line of a terminal, without what controls it: objects and the API server choose texts.
fn line_of(text: &str) -> String {
    printable_text(text).replace('\n', " ")
}

/// A running console. Dropping it closes the port and ends the watches.
#[derive(Debug)]
pub struct Console {
    address: SocketAddr,
    access: Arc<Access>,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl Console {
    /// Opens the port, and begins to watch with a client that stays as it is.
    ///
    /// # Errors
    /// When the port is taken, or the system has no random numbers.
    pub async fn open(
        client: Client,
        clock: Arc<dyn Clock>,
        options: &Options,
        announce: impl Fn(&Notice<'_>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let source: Arc<dyn Source> = Arc::new(Fixed(client.clone()));
        Self::open_with((source, client), clock, options, announce).await
    }

    /// The same with the logins of a source, and a client with the first of them.
    ///
    /// # Errors
    /// When the port is taken, or the system has no random numbers.
    pub async fn open_with(
        logins: (Arc<dyn Source>, Client),
        clock: Arc<dyn Clock>,
        options: &Options,
        announce: impl Fn(&Notice<'_>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let announce: Arc<dyn Fn(&Notice<'_>) + Send + Sync> = Arc::new(announce);
        let (login, keeper) = Keeper::new(logins, Arc::clone(&clock), Arc::clone(&announce));
        let acting = Acting::new(Arc::clone(&login), Arc::clone(&clock), options, Arc::clone(&announce));
        let next = move |url: &str| announce(&Notice::NextUrl(url));
        let access = Arc::new(Access::new(address, Box::new(next))?);
        let shared = Arc::new(Shared::default());
        let changes = Arc::new(Changes::new(Arc::clone(&shared), clock, Arc::clone(&login)));
        let mut tasks = JoinSet::new();
        let scope = follow::Scope {
            only: options.namespace.clone(),
            default: options.default_namespace.clone(),
        };
        tasks.spawn(keeper.run());
        tasks.spawn(follow::all(login, Arc::clone(&shared), scope));
        tasks.spawn(Arc::clone(&changes).run());
        let pages = Pages {
            access: Arc::clone(&access),
            changes,
            acting: Arc::new(acting),
        };
        tasks.spawn(server::serve(listener, Arc::new(pages)));
        Ok(Self {
            address,
            access,
            shared,
            _tasks: tasks,
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for a browser, which is good for one of them.
    #[must_use]
    pub fn url(&self) -> String {
        self.access.url()
    }

    /// Waits until each kind was listed, or is known not to be readable.
    pub async fn listed(&self) {
        self.shared.listed().await;
    }
}
