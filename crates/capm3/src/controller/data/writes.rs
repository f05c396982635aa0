//! Writes that several controllers make.

use metal3_runtime::access::{Permits, Role, verb};
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::work::Fault;
use metal3_runtime::write::{Writable, WriteError, WriteErrorKind, Writer, Written};

use super::needs::Data;
use crate::data::release::LetGo;

/// Lets an object go, at the version that was seen and at the one that our own first write leaves.
pub(super) async fn let_go<K>(writer: &Writer<Data>, cache: &SharedCache<K>, let_go: LetGo) -> Result<(), WriteError>
where
    Data: Permits<verb::Patch, K> + Permits<verb::Delete, K>,
    K: Writable + Sync + 'static,
{
    let LetGo { seen, patch, delete } = let_go;
    let mut last = seen;
    if let Some(patch) = patch {
        match writer.patch(cache, &last.key, patch).await? {
            Written::Object(object) => {
                // An object as the server returned it has an identity.
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

/// Creates an object. Where one of its name exists, the cache learns of it, and the next pass decides what it is.
pub(in crate::controller) async fn create<R, K>(
    writer: &Writer<R>,
    cache: &SharedCache<K>,
    object: &K,
) -> Result<Created, Fault>
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
        Err(error) if error.kind == WriteErrorKind::Invalid => Ok(Created::Refused(error)),
        Err(error) if error.kind == WriteErrorKind::Forbidden => Ok(Created::Forbidden(error)),
        Err(error) => Err(error.into()),
    }
}

/// What became of an object that was to be created.
pub(in crate::controller) enum Created {
    /// It is there.
    Done,
    /// Another of that name is.
    Exists,
    /// The server does not take it as it is.
    Refused(WriteError),
    /// We may not make one, or not now.
    Forbidden(WriteError),
}
