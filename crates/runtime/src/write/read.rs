//! Live reads: past the cache, for what it does not show and before what cannot be undone.

use kube::core::Request;
use kube::core::params::{GetParams, ListParams};
use kube_core::ObjectList;

use crate::access::{Permits, Role, verb};
use crate::cache::{AnswerContent, Key};
use crate::watch::PAGE_SIZE;
use crate::work::{Class, Fault, classify, read_fault};

use super::target::WriteTarget;
use super::writer::{Writable, Writer};

impl<R: Role> Writer<R> {
    /// The object as the server has it now, read from a quorum; nothing where the server says that there is none. What
    /// comes enters the cache.
    ///
    /// # Errors
    /// When nobody can say: that is not the same as nothing.
    pub async fn read<K: Writable>(&self, target: &impl WriteTarget<K>, object: &Key) -> Result<Option<K>, Fault>
    where
        R: Permits<verb::Get, K>,
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
        let placed = target
            .begin_write(None, object)
            .wrote(found.clone(), AnswerContent::OwnChange);
        placed.map_err(|error| Fault::bug(format!("{}: {error}", op())))?;
        Ok(Some(found))
    }

    /// Every object of a namespace as the server has it now, in pages. What comes enters the cache as it comes, and
    /// nothing is kept: the cache is where to look afterwards. What the cache shows and the list did not bring is gone or
    /// about to go; the watch will say so.
    ///
    /// # Errors
    /// When nobody can say. The cache may know a part by then.
    pub async fn list<K: Writable>(&self, target: &impl WriteTarget<K>, namespace: &str) -> Result<(), Fault>
    where
        R: Permits<verb::List, K>,
    {
        let op = || format!("list {} of {namespace}", K::plural(&()));
        let mut page = ListParams::default().limit(PAGE_SIZE);
        loop {
            let request = Request::new(K::url_path(&(), Some(namespace))).list(&page);
            let request = request.map_err(|error| read_fault(op(), kube::Error::BuildRequest(error)))?;
            let text = self
                .client
                .request_text(request)
                .await
                .map_err(|error| read_fault(op(), error))?;
            let list: ObjectList<K> =
                serde_json::from_str(&text).map_err(|error| read_fault(op(), kube::Error::SerdeError(error)))?;
            for object in list.items {
                let key = Key::of(&object);
                let placed = target.begin_write(None, &key).wrote(object, AnswerContent::OwnChange);
                placed.map_err(|error| Fault::bug(format!("{}: {error}", op())))?;
            }
            match list.metadata.continue_.filter(|rest| !rest.is_empty()) {
                Some(rest) => page = page.continue_token(&rest),
                None => return Ok(()),
            }
        }
    }
}
