//! Options of reads and writes: the query, and the body of a delete.

use metal3_schema::FieldError;
use serde_json::Value;

use super::object;
use super::refusal::Refusal;
use super::request::Request;
use super::wire;

/// How strictly unknown fields are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options of a write.
#[derive(Debug, Clone)]
pub(super) struct WriteOptions {
    pub(super) dry_run: bool,
    pub(super) fields: FieldValidation,
    /// The field manager.
    pub(super) manager: String,
}

/// The longest field manager name.
const LONGEST_MANAGER: usize = 128;

impl WriteOptions {
    pub(super) fn read(request: &Request, options: &str) -> Result<Self, Refusal> {
        check_manager(request, options)?;
        let fields = match request.option("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let allowed = ["", "Ignore", "Strict", "Warn"].map(str::to_owned);
                let error = FieldError::not_supported("fieldValidation", other.into(), &allowed);
                return Err(Refusal::invalid_options(options, error));
            }
        };
        Ok(Self {
            dry_run: dry_run(request.option("dryRun"), options)?,
            fields,
            manager: match request.option("fieldManager") {
                "" => agent(&request.agent),
                manager => manager.to_owned(),
            },
        })
    }
}

fn check_manager(request: &Request, options: &str) -> Result<(), Refusal> {
    let apply = request.is_apply();
    let manager = request.option("fieldManager");
    let error = if apply && manager.is_empty() {
        FieldError::required("fieldManager", "is required for apply patch")
    } else if !apply && options == "PatchOptions" && request.query.contains_key("force") {
        FieldError::forbidden("force", "may not be specified for non-apply patch")
    } else if manager.len() > LONGEST_MANAGER {
        FieldError::too_long("fieldManager", 128)
    } else {
        return Ok(());
    };
    Err(Refusal::invalid_options(options, error))
}

/// The field manager of a user agent: the part before the slash.
fn agent(agent: &str) -> String {
    let name = agent.split('/').next().unwrap_or_default();
    let mut kept = String::new();
    for character in name.chars().filter(|character| !character.is_control()) {
        if kept.len().saturating_add(character.len_utf8()) > LONGEST_MANAGER {
            break;
        }
        kept.push(character);
    }
    if kept.is_empty() { "unknown".to_owned() } else { kept }
}

fn dry_run(value: &str, options: &str) -> Result<bool, Refusal> {
    match value {
        "" => Ok(false),
        "All" => Ok(true),
        other => {
            let error = FieldError::not_supported("dryRun", serde_json::json!([other]), &["All".to_owned()]);
            Err(Refusal::invalid_options(options, error))
        }
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Propagation {
    /// What an earlier delete chose; else they are deleted later.
    #[default]
    Unset,
    /// They are deleted later.
    Background,
    /// Those that block the deletion are deleted before.
    Foreground,
    /// They stay, without the owner.
    Orphan,
}

/// Finalizers by which the garbage collector handles dependents first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

impl Propagation {
    /// Sets the finalizers of the garbage collector. Returns whether they change.
    pub(super) fn mark(self, object: &mut Value) -> bool {
        let wanted = match self {
            Self::Unset => return false,
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        };
        let before = object::finalizers(object);
        let mut after: Vec<String> = before
            .iter()
            .filter(|name| ![FOREGROUND, ORPHAN].contains(&name.as_str()))
            .cloned()
            .collect();
        after.extend(wanted.map(str::to_owned));
        let changes = after != before;
        if changes {
            object::set(object, "finalizers", after);
        }
        changes
    }
}

/// Options of a delete: from the body, or from the query when there is no body.
#[derive(Debug, Clone, Default)]
pub(super) struct DeleteOptions {
    pub(super) dry_run: bool,
    pub(super) policy: Propagation,
    pub(super) uid: Option<String>,
    pub(super) version: Option<String>,
}

impl DeleteOptions {
    pub(super) fn read(request: &Request) -> Result<Self, Refusal> {
        let body: Value = if request.body.is_empty() {
            Value::Null
        } else if wire::is_binary(request) {
            wire::decode(&request.body, "DeleteOptions")?
        } else {
            serde_json::from_slice(&request.body).map_err(|error| Refusal::bad_request(error.to_string()))?
        };
        let text = |at: &str| body.pointer(at).and_then(Value::as_str).map(str::to_owned);
        if let Some(kind) = text("/kind").filter(|kind| kind != "DeleteOptions") {
            return Err(Refusal::bad_request(format!("{kind} is no DeleteOptions")));
        }
        if body.get("orphanDependents").is_some_and(|value| !value.is_null()) {
            return Err(Refusal::unsupported("orphanDependents; use propagationPolicy"));
        }
        let policy = text("/propagationPolicy").unwrap_or_else(|| request.option("propagationPolicy").to_owned());
        let policy = match policy.as_str() {
            "" => Propagation::Unset,
            "Background" => Propagation::Background,
            "Foreground" => Propagation::Foreground,
            "Orphan" => Propagation::Orphan,
            other => {
                let allowed = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned);
                let error = FieldError::not_supported("propagationPolicy", other.into(), &allowed);
                return Err(Refusal::invalid_options("DeleteOptions", error));
            }
        };
        let value = text("/dryRun/0").unwrap_or_else(|| request.option("dryRun").to_owned());
        Ok(Self {
            dry_run: dry_run(&value, "DeleteOptions")?,
            policy,
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
        })
    }
}

/// Which state a list shows or a watch starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The newest.
    Newest,
    /// Any: the server's cache is enough.
    Any,
    /// This one or a later one.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

/// The seconds after which a client wants an answer to end.
pub(super) fn timeout(request: &Request) -> Result<Option<i64>, Refusal> {
    match request.option("timeoutSeconds") {
        "" => Ok(None),
        text => whole(text).map(Some),
    }
}

fn whole(text: &str) -> Result<i64, Refusal> {
    let wrong = |_| Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
    text.parse().map_err(wrong)
}

pub(super) fn list_at(request: &Request) -> Result<At, Refusal> {
    timeout(request)?;
    let (version, matching) = (
        request.option("resourceVersion"),
        request.option("resourceVersionMatch"),
    );
    if request.query.contains_key("sendInitialEvents") {
        return Err(forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    check_match(version, matching)?;
    if version.is_empty() {
        return Ok(At::Newest);
    }
    let number = number(version).map_err(|why| Refusal::bad_request(format!("invalid resource version: {why}")))?;
    Ok(match (number, matching) {
        (number, "Exact") => At::Exact(number),
        (0, _) => At::Any,
        // With a limit and without a match rule, the server returns exactly the given version.
        (number, "") if limit(request)?.is_some() => At::Exact(number),
        (number, _) => At::NotOlderThan(number),
    })
}

fn check_match(version: &str, matching: &str) -> Result<(), Refusal> {
    if matching.is_empty() {
        return Ok(());
    }
    if version.is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        return Err(forbidden("resourceVersionMatch", why));
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        let allowed = ["Exact", "NotOlderThan", ""].map(str::to_owned);
        let error = FieldError::not_supported("resourceVersionMatch", matching.into(), &allowed);
        return Err(Refusal::invalid_options("ListOptions", error));
    }
    if matching == "Exact" && version == "0" {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        return Err(forbidden("resourceVersionMatch", why));
    }
    Ok(())
}

/// Where a watch starts, and whether it begins with all objects and a bookmark that ends them.
pub(super) struct WatchStart {
    pub(super) after: Option<u64>,
    pub(super) initial: bool,
    pub(super) marked: bool,
}

pub(super) fn watch_start(request: &Request) -> Result<WatchStart, Refusal> {
    let (version, matching) = (
        request.option("resourceVersion"),
        request.option("resourceVersionMatch"),
    );
    let streaming = request.query.contains_key("sendInitialEvents");
    if streaming && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(forbidden("resourceVersionMatch", why));
    }
    if !streaming && !matching.is_empty() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return Err(forbidden("resourceVersionMatch", why));
    }
    let after = match version {
        "" | "0" => None,
        text => Some(number(text).map_err(Refusal::internal)?),
    };
    let asked = request.flag("sendInitialEvents");
    let initial = if streaming { asked } else { after.is_none() };
    let bookmarks = request.flag("allowWatchBookmarks");
    Ok(WatchStart {
        after,
        initial,
        // For version 0 the server sends the bookmark even without `sendInitialEvents`.
        marked: bookmarks && initial && (asked || version == "0"),
    })
}

fn forbidden(field: &str, why: &str) -> Refusal {
    Refusal::invalid_options("ListOptions", FieldError::forbidden(field, why))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
    })
}

pub(super) fn limit(request: &Request) -> Result<Option<usize>, Refusal> {
    match request.option("limit") {
        "" => Ok(None),
        text => {
            let number = whole(text)?;
            Ok(usize::try_from(number).ok().filter(|limit| *limit > 0))
        }
    }
}
