//! Metadata of a data template.

use crate::infrastructure::conversion::error::ConversionError;
use crate::infrastructure::conversion::value::{list, narrow_nonzero, text, widen_nonzero};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};

pub(super) fn to_spoke(data: &hub::MetaData) -> spoke::MetaData {
    let pools = |pools: &[hub::FromPool]| pools.iter().map(pool_to_spoke).collect();
    spoke::MetaData {
        strings: data.strings.iter().map(string_to_spoke).collect(),
        object_names: data.object_names.iter().map(object_name_to_spoke).collect(),
        indexes: data.indexes.iter().map(index_to_spoke).collect(),
        ip_addresses_from_pool: pools(&data.ip_addresses_from_pool),
        prefixes_from_pool: pools(&data.prefixes_from_pool),
        gateways_from_pool: pools(&data.gateways_from_pool),
        dns_servers_from_pool: pools(&data.dns_servers_from_pool),
        from_host_interfaces: data.from_host_interfaces.iter().map(interface_to_spoke).collect(),
        from_labels: data.from_labels.iter().map(label_to_spoke).collect(),
        from_annotations: data.from_annotations.iter().map(annotation_to_spoke).collect(),
        namespaces: data.namespaces.iter().map(namespace_to_spoke).collect(),
    }
}

pub(super) fn from_spoke(data: &spoke::MetaData) -> Result<hub::MetaData, ConversionError> {
    let pools = |pools: &[spoke::FromPool]| pools.iter().map(pool_from_spoke).collect();
    Ok(hub::MetaData {
        strings: data.strings.iter().map(string_from_spoke).collect(),
        object_names: data.object_names.iter().map(object_name_from_spoke).collect(),
        indexes: list(&data.indexes, "indexes", index_from_spoke)?,
        ip_addresses_from_pool: pools(&data.ip_addresses_from_pool),
        prefixes_from_pool: pools(&data.prefixes_from_pool),
        gateways_from_pool: pools(&data.gateways_from_pool),
        dns_servers_from_pool: pools(&data.dns_servers_from_pool),
        from_host_interfaces: data.from_host_interfaces.iter().map(interface_from_spoke).collect(),
        from_labels: data.from_labels.iter().map(label_from_spoke).collect(),
        from_annotations: data.from_annotations.iter().map(annotation_from_spoke).collect(),
        namespaces: data.namespaces.iter().map(namespace_from_spoke).collect(),
    })
}

/// Both directions of an entry whose members are the same in both versions.
macro_rules! alike {
    ($down:ident, $up:ident, $entry:ident { $($member:ident),+ }) => {
        fn $down(entry: &hub::$entry) -> spoke::$entry {
            spoke::$entry { $($member: entry.$member.clone()),+ }
        }

        fn $up(entry: &spoke::$entry) -> hub::$entry {
            hub::$entry { $($member: entry.$member.clone()),+ }
        }
    };
}

alike!(string_to_spoke, string_from_spoke, StringEntry { key, value });
alike!(
    object_name_to_spoke,
    object_name_from_spoke,
    ObjectNameEntry { key, object }
);
alike!(namespace_to_spoke, namespace_from_spoke, NamespaceEntry { key });
alike!(label_to_spoke, label_from_spoke, FromLabel { key, object, label });
alike!(
    annotation_to_spoke,
    annotation_from_spoke,
    FromAnnotation {
        key,
        object,
        annotation
    }
);

fn index_to_spoke(entry: &hub::IndexEntry) -> spoke::IndexEntry {
    spoke::IndexEntry {
        key: entry.key.clone(),
        offset: widen_nonzero(entry.offset),
        step: widen_nonzero(entry.step),
        prefix: entry.prefix.clone(),
        suffix: entry.suffix.clone(),
    }
}

fn index_from_spoke(entry: &spoke::IndexEntry) -> Result<hub::IndexEntry, ConversionError> {
    Ok(hub::IndexEntry {
        key: entry.key.clone(),
        offset: narrow_nonzero(entry.offset, "offset")?,
        step: narrow_nonzero(entry.step, "step")?,
        prefix: text(entry.prefix.as_ref()),
        suffix: text(entry.suffix.as_ref()),
    })
}

fn pool_to_spoke(entry: &hub::FromPool) -> spoke::FromPool {
    spoke::FromPool {
        key: entry.key.clone(),
        name: entry.name.clone(),
        api_group: entry.api_group.clone(),
        kind: entry.kind.clone(),
    }
}

fn pool_from_spoke(entry: &spoke::FromPool) -> hub::FromPool {
    hub::FromPool {
        key: entry.key.clone(),
        name: entry.name.clone(),
        api_group: text(entry.api_group.as_ref()),
        kind: text(entry.kind.as_ref()),
    }
}

fn interface_to_spoke(entry: &hub::FromHostInterface) -> spoke::FromHostInterface {
    spoke::FromHostInterface {
        key: entry.key.clone(),
        interface: entry.interface.clone(),
        from_boot_mac: entry.from_boot_mac,
    }
}

fn interface_from_spoke(entry: &spoke::FromHostInterface) -> hub::FromHostInterface {
    hub::FromHostInterface {
        key: entry.key.clone(),
        interface: text(entry.interface.as_ref()),
        from_boot_mac: entry.from_boot_mac,
    }
}
