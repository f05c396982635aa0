//! Writes of several controllers.

use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::work::Fault;
use metal3_runtime::write::{Writable, WriteError, WriteErrorKind, Writer, Written};

use crate::data::release::Release;
use crate::needs::Data;

/// Releases an object, at its observed version and then at that of the first write.
pub(in crate::data) async fn release_object<K>(
    writer: &Writer<Data>,
    cache: &SharedCache<K>,
    release: Release,
) -> Result<(), WriteError>
where
    Data: Permits<verb::Patch, K> + Permits<verb::Delete, K>,
    K: Writable + Sync + 'static,
{
    let Release {
        observed,
        patch,
        delete,
    } = release;
    let mut last = observed;
    if let Some(patch) = patch {
        match writer.patch(cache, &last.key, patch).await? {
            Written::Object(object) => {
                // An object returned by the API server has an identity.
                if let Ok(now) = Identity::of(&object) {
                    last = now;
                }
            }
            Written::Deleted | Written::DryRun => return Ok(()),
            Written::Unchanged => {}
        }
    }
    if delete {
        writer.delete_at(cache, &last).await?;
    }
    Ok(())
}

/// Creates an object. If the name exists, reads it into the cache, and the next reconcile decides.
pub(crate) async fn create<R, K>(writer: &Writer<R>, cache: &SharedCache<K>, object: &K) -> Result<Created, Fault>
where
    R: Role + Permits<verb::Create, K> + Permits<verb::Get, K>,
    K: Writable + Sync + 'static,
{
    match writer.create(cache, object).await {
        Ok(_) => Ok(Created::Done),
        Err(error) if error.kind == WriteErrorKind::AlreadyExists => {
            writer.read(cache, &Key::of(object)).await?;
            Ok(Created::Exists)
        }
        Err(error) if matches!(error.kind, WriteErrorKind::Invalid | WriteErrorKind::NotFound) => {
            Ok(Created::Rejected(error))
        }
        Err(error) if error.kind == WriteErrorKind::Forbidden => Ok(Created::Forbidden(error)),
        Err(error) => Err(error.into()),
    }
}

/// The result of a creation.
pub(crate) enum Created {
    /// It is created.
    Done,
    /// Another object of that name exists.
    Exists,
    /// The API server rejects it as invalid, or does not serve its kind.
    Rejected(WriteError),
    /// The API server forbids it.
    Forbidden(WriteError),
}
