//! Memory of what the server of a tenant sends, measured by the allocator.
//!
//! In its own binary, because the allocator counts everything.

use std::alloc::System;

use cap::Cap;
use k8s_openapi::api::core::v1::ConfigMap;
use metal3_runtime::watch::decode::{event, page};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The longest event of a tenant's server.
const LONGEST: usize = 4 << 20;

/// Metadata of the longest length, which takes many times that once decoded.
fn metadata(start: &str, item: &str, end: &str) -> String {
    let start = format!(r#"{{"name":"n","uid":"u","resourceVersion":"7",{start}"#);
    let count = (LONGEST - start.len()) / item.len() - 100;
    start + &item.repeat(count) + end
}

#[test]
fn bookkeeping_of_an_object_takes_no_memory_whatever_its_length() {
    for metadata in [
        metadata(r#""managedFields":["#, "{},", "{}]}"),
        metadata(r#""managedFields":[{"fieldsV1":{"a":["#, r#"{"":0},"#, "0]}}]}"),
        metadata(r#""ownerReferences":["#, "{},", "{}]}"),
        metadata(r#""finalizers":["#, r#""","#, r#"""]}"#),
    ] {
        // The object itself cannot be decoded, and fails before its metadata: its identity is read from them.
        let object = format!(r#"{{"data":7,"metadata":{metadata}}}"#);
        let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{object}]}}"#);
        for kind in ["ADDED", "DELETED", "BOOKMARK"] {
            let line = format!(r#"{{"type":"{kind}","object":{object}}}"#);
            let before = ALLOCATOR.allocated();
            assert!(event::<ConfigMap>(line.as_bytes()).is_ok());
            let most = ALLOCATOR.max_allocated().saturating_sub(before);
            assert!(most < 8 * LONGEST, "{kind}: {most}");
        }
        let before = ALLOCATOR.allocated();
        assert_eq!(page::<ConfigMap>(&list, 10).unwrap().items.len(), 1);
        let most = ALLOCATOR.max_allocated().saturating_sub(before);
        assert!(most < 8 * LONGEST, "{most}");
    }
}
