//! Histories of edits by the user, the control plane, Cluster API, and the administrator who changes the Cluster's
//! endpoint.

use proptest::prelude::*;

use super::*;
use crate::endpoint::spec_endpoint::{SpecEndpoint, spec_endpoint};

#[derive(Debug, Clone, Copy)]
enum Edit {
    /// The control plane publishes one of a few addresses, or none.
    Source(Option<u8>),
    /// The user sets or clears the endpoint.
    Typed(Option<u8>),
    /// The administrator changes the Cluster, if it has an endpoint.
    Admin(u8),
    /// Cluster API copies the endpoint of the object.
    Core,
    /// The source becomes unreadable or readable.
    Readable(bool),
    /// Time passes.
    Wait(u8),
    /// The status write is lost.
    Crash,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => proptest::option::of(0..4_u8).prop_map(Edit::Source),
        2 => proptest::option::of(0..4_u8).prop_map(Edit::Typed),
        1 => (0..4_u8).prop_map(Edit::Admin),
        2 => Just(Edit::Core),
        1 => any::<bool>().prop_map(Edit::Readable),
        2 => (1..20_u8).prop_map(Edit::Wait),
        1 => Just(Edit::Crash),
    ]
}

fn address_number(number: u8) -> Address {
    address(&format!("192.0.2.{}:6443", number + 1))
}

struct Model {
    object: Metal3Cluster,
    fixed: Option<Address>,
    source: Option<Address>,
    is_readable: bool,
    is_provisioned: bool,
    now: i64,
    /// The derived values, in order.
    writes: Vec<Address>,
    /// Number of occasions to derive: each change of the source or of the Cluster, and each edit of the user.
    derivations: usize,
    last_write: Option<i64>,
}

impl Model {
    fn new(source: &str) -> Self {
        Self {
            object: with_source(source),
            fixed: None,
            source: None,
            is_readable: true,
            is_provisioned: false,
            now: 0,
            writes: Vec::new(),
            derivations: 0,
            last_write: None,
        }
    }

    fn apply_edit(&mut self, edit: Edit) {
        match edit {
            Edit::Source(number) => {
                let new = number.map(address_number);
                self.derivations += usize::from(new != self.source);
                self.source = new;
            }
            Edit::Typed(number) => {
                let stated = number
                    .map(address_number)
                    .map(|Address { host, port }| json!({ "host": host, "port": port }));
                self.object.spec.control_plane_endpoint = serde_json::from_value(json!(stated)).unwrap();
                self.derivations += 1;
            }
            Edit::Admin(number) => {
                if let Some(fixed) = &mut self.fixed {
                    let new = address_number(number);
                    self.derivations += usize::from(new != *fixed);
                    *fixed = new;
                }
            }
            Edit::Core => {
                let stated = self.object.spec.control_plane_endpoint.as_ref().and_then(Address::of);
                if self.fixed.is_none() && self.is_provisioned && stated.is_some() {
                    self.fixed = stated;
                    self.derivations += 1;
                }
            }
            Edit::Readable(is_readable) => self.is_readable = is_readable,
            Edit::Wait(seconds) => self.now += i64::from(seconds),
            Edit::Crash => self.object.status = Metal3Cluster::default().status,
        }
    }

    fn plan(&self, is_secondary: bool) -> Resolution {
        let state = match &self.source {
            _ if !self.is_readable => SourceState::Unknown("odd".to_owned()),
            Some(address) => SourceState::Address(address.clone()),
            None => SourceState::Empty,
        };
        let mut cluster = cluster(None);
        let fixed = self.fixed.as_ref();
        let fixed = fixed.map(|Address { host, port }| json!({ "host": host, "port": port }));
        cluster.spec.control_plane_endpoint = serde_json::from_value(json!(fixed)).unwrap();
        let source_values = control_plane(state);
        let input = ResolveInput {
            is_secondary,
            now: at(self.now),
            ..input(&self.object, &cluster, &source_values)
        };
        resolve(&input).unwrap()
    }

    fn check_write(&self, write: &Derived) -> Result<(), TestCaseError> {
        let before = spec_endpoint(&self.object);
        prop_assert!(
            !matches!(before, SpecEndpoint::Typed(_)),
            "the endpoint of the user is overwritten"
        );
        let Some(fixed) = &self.fixed else {
            prop_assert_eq!(Some(&write.address), self.source.as_ref());
            let since = self.last_write.map(|last| self.now - last);
            let is_rewrite = matches!(before, SpecEndpoint::Derived(_));
            prop_assert!(
                !is_rewrite || since.is_none_or(|since| since >= 10),
                "too soon: {since:?}"
            );
            return Ok(());
        };
        prop_assert_eq!(&write.address, fixed, "the endpoint of the Cluster is not used");
        Ok(())
    }

    /// Reconciles and checks the result. A second reconcile must change nothing.
    fn reconcile(&mut self, is_secondary: bool) -> Result<(), TestCaseError> {
        let found = self.plan(is_secondary);
        if let Some(write) = &found.write {
            self.check_write(write)?;
            self.writes.push(write.address.clone());
            // An endpoint that the user cleared is written again at once, without a new interval.
            if self.object.status.control_plane_endpoint != found.endpoint {
                self.last_write = Some(self.now);
            }
            self.object = with_derived(&self.object, write);
        }
        let shown = found.endpoint.as_ref();
        let shown = shown.and_then(|shown| Address::stated(shown.host.as_deref(), shown.port, None));
        prop_assert!(
            self.fixed.is_none() || shown == self.fixed,
            "another endpoint than the Cluster's is effective"
        );
        let status = &mut self.object.status;
        if status.control_plane_endpoint != found.endpoint {
            status.last_updated = Some(at(self.now));
        }
        status.control_plane_endpoint.clone_from(&found.endpoint);
        metal3_runtime::condition::set_condition(&mut status.conditions, found.state.condition(None, at(self.now)));
        self.is_provisioned |= found.is_provisioned;
        prop_assert_eq!(self.plan(is_secondary).write, None, "a second reconcile writes again");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn four_writers_never_make_two_fixed_endpoints_and_each_value_is_derived_once(
        edits in proptest::collection::vec(edit(), 1..40),
        source in prop_oneof![Just("Auto"), Just("ControlPlane"), Just("Cluster"), Just("Spec")],
        is_secondary in any::<bool>(),
    ) {
        let mut model = Model::new(source);
        for edit in edits {
            model.apply_edit(edit);
            model.reconcile(is_secondary)?;
            prop_assert!(
                model.writes.len() <= model.derivations,
                "{} writes for {} values", model.writes.len(), model.derivations
            );
        }
    }
}
