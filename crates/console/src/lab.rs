//! Simulated machines, which a page may break and mend. Real ones have no such page.

use std::fmt;
use std::pin::Pin;

use serde::Serialize;

/// The names of what is done to machines begin with this.
pub const PREFIX: &str = "lab-";

/// What can be done to a simulated machine now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Its name in requests; it begins with [`PREFIX`].
    pub action: &'static str,
    /// What it is called on the page.
    pub what: &'static str,
    /// What happens then.
    pub consequence: &'static str,
}

/// The end of an action, with why it failed.
pub type Acted<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// The machines of a simulated world.
pub trait Lab: fmt::Debug + Send + Sync {
    /// What can be done to the machine of a host; nothing for hosts of which it simulates none.
    fn offers(&self, namespace: &str, name: &str) -> Vec<Offer>;

    /// Does one of it.
    fn act<'a>(&'a self, namespace: &'a str, name: &'a str, action: &'a str) -> Acted<'a>;
}
