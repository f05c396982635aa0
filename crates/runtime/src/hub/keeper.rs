//! Who ends what a hub leaves open: the task that fills it.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::queue::Hold;
use crate::version::ResourceVersion;

use super::identity::Key;
use super::shared::SharedHub;

/// An object of which we do not know what the server holds, or that the hub does not show yet.
#[derive(Debug)]
pub(crate) enum Doubt {
    /// Nobody knows what became of a write, or our old view made it fail. Its author waits as long as the doubt lives.
    Lost {
        /// Which object.
        object: Key,
        /// Lets the author go with the doubt.
        _author: Hold,
    },
    /// The answer to a write could not enter the hub. Who waits for this version is in the barrier.
    Late(Key, ResourceVersion),
}

/// Hears of the doubts of one hub. With it ends every wait for a version.
#[derive(Debug)]
pub(crate) struct Keeper<K, I> {
    hub: SharedHub<K, I>,
    doubts: UnboundedReceiver<Doubt>,
}

impl<K, I> Keeper<K, I> {
    pub(super) fn of(hub: SharedHub<K, I>) -> Self {
        let (sender, doubts) = unbounded_channel();
        hub.state().keep(sender);
        Self { hub, doubts }
    }

    /// The next doubt; nothing when somebody else keeps the hub now.
    pub(crate) async fn next(&mut self) -> Option<Doubt> {
        self.doubts.recv().await
    }
}

impl<K, I> Drop for Keeper<K, I> {
    fn drop(&mut self) {
        self.doubts.close();
        self.hub.state().unkept();
    }
}
