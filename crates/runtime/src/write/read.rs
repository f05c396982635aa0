//! Live reads, past the cache: for objects that it does not contain, and before steps that cannot be undone.

use kube::core::Request;
use kube::core::params::{GetParams, ListParams};
use kube_core::{ApiResource, ObjectList, Resource};
use secrecy::zeroize::Zeroizing;
use serde::de::DeserializeOwned;

use crate::access::{Permits, Role, verb};
use crate::cache::{AnswerContent, Key, prune};
use crate::watch::PAGE_SIZE;
use crate::watch::decode::{self, Page};
use crate::work::{Category, Class, Fault, classify, read_fault};

use super::dry_run::newer;
use super::target::{Writable, WriteTarget};
use super::writer::Writer;

impl<R: Role> Writer<R> {
    /// The object on the server now, read from a quorum; `None` if the server reports that it does not exist. The
    /// object enters the cache.
    ///
    /// # Errors
    /// When it is unknown whether the object exists. With the category [`Category::NOT_FOUND`], the kind is not served.
    pub async fn read<K: Writable>(&self, target: &impl WriteTarget<K>, object: &Key) -> Result<Option<K>, Fault>
    where
        R: Permits<verb::Get, K>,
    {
        let Some(mut found) = get_object::<K>(&self.client, object).await? else {
            return Ok(None);
        };
        prune(&mut found);
        if let Some(assumed) = newer(target, object, &found).filter(|_| self.assumes_writes()) {
            return Ok(Some(assumed));
        }
        let placed = target.begin_write(None, object).wrote(&found, AnswerContent::OwnChange);
        placed.map_err(|error| Fault::bug(format!("get {} {object}: {error}", K::plural(&()))))?;
        Ok(Some(found))
    }

    /// The same as [`Writer::read`], for an object whose absence is the expected answer: a list by name, which the server
    /// reads from one key, too. Absence is then an empty list, and no refused request in the audit log.
    ///
    /// # Errors
    /// When it is unknown whether the object exists. With the category [`Category::NOT_FOUND`], the kind is not served.
    pub async fn find<K: Writable>(&self, target: &impl WriteTarget<K>, object: &Key) -> Result<Option<K>, Fault>
    where
        R: Permits<verb::List, K>,
    {
        let op = || format!("read {} {object}", K::plural(&()));
        let namespace = (!object.namespace.is_empty()).then_some(object.namespace.as_str());
        let Some(mut found) = named::<K>(&self.client, K::url_path(&(), namespace), &object.name, op).await? else {
            return Ok(None);
        };
        prune(&mut found);
        let placed = target.begin_write(None, object).wrote(&found, AnswerContent::OwnChange);
        placed.map_err(|error| Fault::bug(format!("{}: {error}", op())))?;
        Ok(Some(found))
    }

    /// One page of a list, of one namespace or all. Its objects enter no cache. A page with more objects than the limit of
    /// `params` is an error before they are decoded.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub async fn page<K>(&self, namespace: Option<&str>, params: &ListParams) -> Result<Page<K>, Fault>
    where
        R: Permits<verb::List, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let op = || format!("list {}", K::plural(&()));
        let request = Request::new(K::url_path(&(), namespace)).list(params);
        let request = request.map_err(|error| read_fault(op(), kube::Error::BuildRequest(error)))?;
        let text = self.client.request_text(request).await;
        let text = text.map_err(|error| read_fault(op(), error))?;
        let most = params.limit.and_then(|limit| usize::try_from(limit).ok());
        let page = decode::page(&text, most.unwrap_or(usize::MAX));
        page.map_err(|error| Fault::transient(op(), Category::UNREADABLE, error.to_string()))
    }

    /// An object of a kind that is known at run time only, on the server now. It is a list, because its errors distinguish an object that does not
    /// exist from a kind or version that is not served, and a role that watches a kind lists it.
    ///
    /// # Errors
    /// When it is unknown whether the object exists. With the category [`Category::NOT_FOUND`], the kind is not served.
    ///
    /// [`Category::NOT_FOUND`]: crate::work::Category::NOT_FOUND
    pub async fn find_of_kind<K>(&self, kind: &ApiResource, object: &Key) -> Result<Option<K>, Fault>
    where
        R: Permits<verb::List, K>,
        K: Resource<DynamicType = ApiResource> + Clone + DeserializeOwned,
    {
        let op = || format!("read {} {object}", kind.plural);
        named::<K>(
            &self.client,
            K::url_path(kind, Some(&object.namespace)),
            &object.name,
            op,
        )
        .await
    }

    /// Lists every object of a namespace live, in pages. The objects enter the cache page by page and are not returned:
    /// read the cache afterwards. An object that is in the cache and not in the list was deleted; the watch reports
    /// that.
    ///
    /// # Errors
    /// When the list is incomplete. The cache may contain a part of it.
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
                let placed = target.begin_write(None, &key).wrote(&object, AnswerContent::OwnChange);
                placed.map_err(|error| Fault::bug(format!("{}: {error}", op())))?;
            }
            match list.metadata.continue_.filter(|rest| !rest.is_empty()) {
                Some(rest) => page = page.continue_token(&rest),
                None => return Ok(()),
            }
        }
    }
}

/// The object of this name in a list by name.
async fn named<K>(client: &kube::Client, path: String, name: &str, op: impl Fn() -> String) -> Result<Option<K>, Fault>
where
    K: Resource + Clone + DeserializeOwned,
{
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(path).list(&params);
    let request = request.map_err(|error| read_fault(op(), kube::Error::BuildRequest(error)))?;
    let text = client.request_text(request).await;
    let text = Zeroizing::new(text.map_err(|error| read_fault(op(), error))?);
    let list: ObjectList<K> =
        serde_json::from_str(&text).map_err(|error| read_fault(op(), kube::Error::SerdeError(error)))?;
    let mut found = list.items.into_iter();
    Ok(found.find(|one| one.meta().name.as_deref() == Some(name)))
}

/// An object on the server now; `None` if the server reports that it does not exist.
pub(crate) async fn get_object<K>(client: &kube::Client, object: &Key) -> Result<Option<K>, Fault>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let op = || format!("get {} {object}", K::plural(&()));
    let namespace = (!object.namespace.is_empty()).then_some(object.namespace.as_str());
    let request = Request::new(K::url_path(&(), namespace)).get(&object.name, &GetParams::default());
    let request = request.map_err(|error| read_fault(op(), kube::Error::BuildRequest(error)))?;
    let text = match client.request_text(request).await {
        Err(error) if classify(&error) == Class::NotFound && !is_of_kind(&error) => return Ok(None),
        answer => Zeroizing::new(answer.map_err(|error| read_fault(op(), error))?),
    };
    // Decoded here, because the client would log a body that it cannot decode.
    let found = serde_json::from_str(&text).map_err(|error| read_fault(op(), kube::Error::SerdeError(error)))?;
    Ok(Some(found))
}

/// Whether the server does not serve the kind or its version, so that an object of it may exist. The error about an object names it;
/// that of a path has a text alone. The errors of tenants have neither, and name no kind.
fn is_of_kind(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let names_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    status.reason == NO_STATUS || (status.reason == "NotFound" && !names_object)
}

/// The reason that kube gives to an error whose body is no Status.
const NO_STATUS: &str = "Failed to parse error data";
