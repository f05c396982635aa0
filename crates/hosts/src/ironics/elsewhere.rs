//! What the lists of the other Ironics show of a host.
//!
//! A name is what a host records, and a name may be given to another Ironic: by an exchange, by a correction of its URL, by a
//! resource that changes its endpoint. An Ironic without the node of a host says nothing then while another one has it. The lists
//! are there already, so that no request is needed.

/// What the list of one Ironic shows of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// It has each node that this Ironic has.
    pub(crate) is_complete: bool,
    /// It has the node that the status records, whatever its name.
    pub(crate) has_recorded: bool,
    /// It has a node with the name of the host.
    pub(crate) has_named: bool,
    /// It has a node for the machine at the address of the host.
    pub(crate) has_machine: bool,
    /// It has the nodes of the Ironic of the host, or is at the same endpoint.
    pub(crate) is_same: bool,
}

/// What the other Ironics show of the node of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Elsewhere {
    /// There is no other one; or each has listed its nodes, and none is of the host.
    #[default]
    Nothing,
    /// One of them has not listed its nodes.
    Unknown,
    /// One has the node that the status records, or one with the name of the host, and the Ironic of the host has it not.
    Node,
    /// One has a node for the machine of the host.
    Machine,
    /// One is the Ironic of the host under a second name.
    Same,
}

/// `own`: what the Ironic of the host lists. An incomplete list shows what is there, and not what is elsewhere: it may be that of
/// the endpoint before.
pub(crate) fn elsewhere(own: Listing, others: &[Listing]) -> Elsewhere {
    let any = |shows: fn(&Listing) -> bool| others.iter().any(shows);
    let has_recorded = own.is_complete && own.has_recorded;
    let has_any = has_recorded || (own.is_complete && own.has_named);
    if !has_recorded && any(|one| one.has_recorded) || !has_any && any(|one| one.has_named) {
        Elsewhere::Node
    } else if any(|one| one.is_same) {
        Elsewhere::Same
    } else if any(|one| one.has_machine) {
        Elsewhere::Machine
    } else if own.is_complete && others.iter().all(|one| one.is_complete) {
        Elsewhere::Nothing
    } else {
        Elsewhere::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list by letters: complete, recorded node, name, machine, same.
    fn listing(letters: &str) -> Listing {
        let has = |letter| letters.contains(letter);
        Listing {
            is_complete: has('c'),
            has_recorded: has('r'),
            has_named: has('n'),
            has_machine: has('m'),
            is_same: has('s'),
        }
    }

    #[test]
    fn node_of_a_host_is_elsewhere_when_another_list_has_it_and_its_own_has_not() {
        for (own, others, expected) in [
            ("c", vec![], Elsewhere::Nothing),
            ("c", vec!["c", "c"], Elsewhere::Nothing),
            ("c", vec!["c", ""], Elsewhere::Unknown),
            ("", vec!["c"], Elsewhere::Unknown),
            // Exchanged names.
            ("c", vec!["c", "crn"], Elsewhere::Node),
            ("c", vec!["cr"], Elsewhere::Node),
            ("c", vec!["cn"], Elsewhere::Node),
            // Also of one that is away now, or that was not listed since its endpoint changed.
            ("c", vec!["rn"], Elsewhere::Node),
            ("rn", vec!["crn"], Elsewhere::Node),
            // A second node of the name is not the recorded one.
            ("cn", vec!["cr"], Elsewhere::Node),
            ("crn", vec!["cn"], Elsewhere::Nothing),
            ("cr", vec!["cn"], Elsewhere::Nothing),
            ("cn", vec!["cn"], Elsewhere::Nothing),
            // One Ironic with two names.
            ("crn", vec!["crns"], Elsewhere::Same),
            ("c", vec!["cs", ""], Elsewhere::Same),
            ("c", vec!["cm"], Elsewhere::Machine),
            ("c", vec!["m", ""], Elsewhere::Machine),
            ("crnm", vec!["c"], Elsewhere::Nothing),
        ] {
            let all: Vec<Listing> = others.iter().map(|letters| listing(letters)).collect();
            assert_eq!(elsewhere(listing(own), &all), expected, "{own:?} {others:?}");
        }
    }
}
