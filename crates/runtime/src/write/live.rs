//! Live reads: past the hub, for what it does not show and before what cannot be undone.

use kube::core::Request;
use kube::core::params::GetParams;

use crate::access::{May, Role, verb};
use crate::hub::{Key, Part};
use crate::work::{Class, Fault, classify, read_fault};

use super::home::Home;
use super::writer::{Writable, Writer};

impl<R: Role> Writer<R> {
    /// The object as the server has it now, read from a quorum; nothing where the server says that there is none. What
    /// comes enters the hub.
    ///
    /// # Errors
    /// When nobody can say: that is not the same as nothing.
    pub async fn read<K: Writable>(&self, home: &impl Home<K>, object: &Key) -> Result<Option<K>, Fault>
    where
        R: May<verb::Get, K>,
    {
        let op = || format!("get {} {object}", K::plural(&()));
        let namespace = (!object.namespace.is_empty()).then_some(object.namespace.as_str());
        let request = Request::new(K::url_path(&(), namespace)).get(&object.name, &GetParams::default());
        let request = request.map_err(|error| read_fault(op(), kube::Error::BuildRequest(error)))?;
        let text = match self.client.request_text(request).await {
            Err(error) if classify(&error) == Class::NotFound => return Ok(None),
            answer => answer.map_err(|error| read_fault(op(), error))?,
        };
        // Decoded here, because the client would print what it cannot decode.
        let found: K = serde_json::from_str(&text).map_err(|error| read_fault(op(), kube::Error::SerdeError(error)))?;
        let placed = home.depart(None, object).wrote(found.clone(), Part::Ours);
        placed.map_err(|error| Fault::bug(format!("{}: {error}", op())))?;
        Ok(Some(found))
    }
}
