//! Each reason of a product has an explanation, and each explanation a reason.

use std::collections::BTreeSet;

use metal3_api::infrastructure::conditions::{cluster, legacy, machine, remediation, shared};
use metal3_domain::reason::Reason;
use metal3_explain::table::Area;
use metal3_hosts::names as hosts;
use metal3_manager::notice;

/// The reasons that a controller can write on the kinds of an area.
fn declared(area: Area) -> Vec<&'static [Reason]> {
    match area {
        Area::Shared => vec![shared::ALL],
        Area::Clusters => vec![cluster::ALL, metal3_capm3::reasons::cluster::ALL],
        Area::Machines => vec![machine::ALL, legacy::ALL, metal3_capm3::reasons::machine::ALL],
        Area::Templates => vec![metal3_capm3::reasons::template::ALL],
        Area::Data => vec![metal3_capm3::data::reason::ALL],
        Area::Remediation => vec![remediation::ALL, metal3_capm3::reasons::remediation::ALL],
        Area::Hosts => vec![hosts::reason::ALL, hosts::wait_reason::ALL],
        Area::Settings => vec![hosts::settings_reason::ALL],
        Area::Components => vec![hosts::components_reason::ALL],
        Area::AgentImages => vec![hosts::image_reason::ALL],
        Area::Subscriptions => vec![hosts::subscription_reason::ALL],
        Area::DataImages => vec![hosts::disc_reason::ALL],
        Area::Switches => vec![hosts::switch_reason::ALL],
        Area::Claims => vec![hosts::claim_reason::ALL],
        Area::Unserved => vec![hosts::unserved_reason::ALL],
        Area::Addresses => vec![metal3_ipam::names::reason::ALL],
        Area::Process => vec![notice::ALL],
    }
}

/// The older conditions of both kinds share a list; this reason is that of Metal3Clusters.
fn words(area: Area) -> impl Iterator<Item = &'static str> {
    let is_own = move |reason: &&Reason| area != Area::Machines || **reason != legacy::REASON_ENDPOINT_FAILED;
    let own = declared(area).into_iter().flatten().filter(is_own);
    own.map(|reason| reason.as_str())
}

#[test]
fn each_reason_of_a_product_has_a_row() {
    for area in Area::ALL {
        for word in words(area) {
            assert!(
                area.find(word).is_some(),
                "{word} has no row: add one to crates/explain/src/table for {}",
                area.kinds()
            );
        }
    }
}

#[test]
fn each_row_has_a_reason_of_a_product() {
    let everywhere: BTreeSet<&str> = Area::ALL.into_iter().flat_map(words).collect();
    for area in Area::ALL {
        let own: BTreeSet<&str> = words(area).collect();
        for row in area.rows() {
            // A shared row may have the reason of one product only, such as that of an object that cannot be decoded.
            let known = if area == Area::Shared { &everywhere } else { &own };
            assert!(
                known.contains(row.reason),
                "no product writes {}: remove its row",
                row.reason
            );
        }
    }
}
