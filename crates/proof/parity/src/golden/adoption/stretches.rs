//! A timeline cut where a host begins to stand otherwise.
//!
//! Moments and timeline were recorded by two observers without a common clock. What ties them together is how the hosts
//! stand: the timeline tells each change of it, and a moment shows it. Within a stretch nothing says which request came
//! before which moment, and nothing is guessed.

use anyhow::{Result, bail};
use metal3_api::metal3::v1alpha1::ProvisioningState;
use serde_json::Value;

use super::moment::{Moment, Standing, Standings};
use super::timeline::{Change, Entry, Kind, Request, Shown, What};

/// Resource whose changes cut.
const HOSTS: &str = "baremetalhosts";

/// A time in which every host stood the same.
#[derive(Debug, Clone, Default)]
pub(in crate::golden) struct Stretch {
    /// How the hosts stood.
    pub(in crate::golden) hosts: Standings,
    /// What was seen, in order.
    pub(in crate::golden) moments: Vec<Moment>,
    /// What upstream asked of Ironic meanwhile, in order, but for plain reads.
    pub(in crate::golden) requests: Vec<Request>,
    /// What a person did meanwhile, in order.
    pub(in crate::golden) acts: Vec<String>,
    /// What upstream told meanwhile, in order.
    pub(in crate::golden) events: Vec<String>,
    /// How many plain reads upstream made meanwhile.
    pub(in crate::golden) reads: u32,
}

/// Cuts a timeline and puts each moment into its stretch.
///
/// # Errors
/// When a moment shows hosts as they never stood from there on.
pub(in crate::golden) fn cut(moments: Vec<Moment>, entries: Vec<Entry>) -> Result<Vec<Stretch>> {
    let before = match moments.first() {
        // Who records an installation at work sees it for the first time.
        Some(first) if !begins_empty(&entries) => first.standings()?,
        _ => Standings::new(),
    };
    let mut stretches = vec![Stretch {
        hosts: before,
        ..Stretch::default()
    }];
    for Entry { what, .. } in entries {
        let Some(current) = stretches.last_mut() else { break };
        match what {
            What::Request(request) => current.requests.push(request),
            What::User(words) => current.acts.push(words),
            What::Event(words) => current.events.push(words),
            What::Reads(reads) => current.reads += reads.iter().map(|(_, count)| count).sum::<u32>(),
            What::Change(change) if change.plural == HOSTS => {
                let mut hosts = current.hosts.clone();
                apply(&mut hosts, &change);
                if hosts != current.hosts {
                    stretches.push(Stretch {
                        hosts,
                        ..Stretch::default()
                    });
                }
            }
            What::Change(_) => {}
        }
    }
    place(moments, &mut stretches)?;
    Ok(stretches)
}

/// Whether the first that is told of every host is that it was created.
fn begins_empty(entries: &[Entry]) -> bool {
    let mut hosts = entries.iter().filter_map(|entry| match &entry.what {
        What::Change(change) if change.plural == HOSTS => Some(&change.kind),
        _ => None,
    });
    hosts.next().is_none_or(|first| *first == Kind::Created)
}

fn apply(hosts: &mut Standings, change: &Change) {
    match &change.kind {
        Kind::Created => {
            hosts.insert(change.name.clone(), Standing::default());
        }
        Kind::Removed => {
            hosts.remove(&change.name);
        }
        Kind::Members(members) => {
            let host = hosts.entry(change.name.clone()).or_default();
            for member in members {
                match (member.path.as_str(), &member.after) {
                    ("status.provisioning.state", Shown::Whole(state)) => host.state = read_state(state),
                    ("status.provisioning.state", Shown::Absent | Shown::Cut) => {
                        host.state = ProvisioningState::default()
                    }
                    ("status.poweredOn", after) => host.powered_on = *after == Shown::Whole(Value::Bool(true)),
                    _ => {}
                }
            }
        }
        Kind::Unseen => {}
    }
}

fn read_state(state: &Value) -> ProvisioningState {
    serde_json::from_value(state.clone()).unwrap_or_default()
}

/// Moments come in order, so each is of the first stretch that fits and is not before the last one's.
fn place(moments: Vec<Moment>, stretches: &mut [Stretch]) -> Result<()> {
    let mut from = 0;
    for moment in moments {
        let hosts = moment.standings()?;
        let fits = stretches.iter().skip(from).position(|stretch| stretch.hosts == hosts);
        let found = fits.and_then(|ahead| Some((from + ahead, stretches.get_mut(from + ahead)?)));
        let Some((number, stretch)) = found else {
            bail!("{}: from {from} on hosts never stood so: {hosts:?}", moment.label);
        };
        from = number;
        stretch.moments.push(moment);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::timeline;
    use super::*;
    use metal3_files::documents::Document;

    fn moment(label: &str, state: &str, powered_on: bool) -> Moment {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": { "name": "h" },
            "spec": { "online": true },
            "status": {
                "operationalStatus": "OK", "errorMessage": "", "poweredOn": powered_on,
                "provisioning": { "state": state, "ID": "" },
            },
        });
        let document = Document {
            file: "h.yaml".into(),
            value: host,
        };
        Moment {
            label: label.to_owned(),
            objects: Arc::new(vec![document]),
            nodes: None,
        }
    }

    const TIMELINE: &str = "0.1s  baremetalhosts/h gen 1: created\n\
        0.2s  ironic POST /v1/nodes 201 {}\n\
        0.3s  baremetalhosts/h gen 1: status.provisioning.state: - -> \"inspecting\"\n\
        0.4s  ironic GET node x2, ports x1\n\
        0.5s  ironic PUT /v1/nodes/n/states/provision 202 {\"target\":\"inspect\"}\n\
        0.6s  baremetalhosts/h gen 1: status.poweredOn: false -> true; spec.online: - -> true\n\
        0.7s  #### user: delete\n";

    fn cut_at(moments: Vec<Moment>, text: &str) -> Result<Vec<Stretch>> {
        cut(moments, timeline::read(text)?)
    }

    #[test]
    fn requests_stand_with_the_moments_that_they_followed() {
        let moments = vec![
            moment("00", "", false),
            moment("01", "inspecting", false),
            moment("02", "inspecting", false),
            moment("03", "inspecting", true),
        ];
        let stretches = cut_at(moments, TIMELINE).unwrap();
        let shown = |stretch: &Stretch| {
            let labels: Vec<&str> = stretch.moments.iter().map(|moment| moment.label.as_str()).collect();
            let paths: Vec<&str> = stretch.requests.iter().map(|request| request.path.as_str()).collect();
            (labels.join(" "), paths.join(" "), stretch.reads, stretch.acts.len())
        };
        let expected = [
            ("", "", 0, 0),
            ("00", "/v1/nodes", 0, 0),
            ("01 02", "/v1/nodes/n/states/provision", 3, 0),
            ("03", "", 0, 1),
        ];
        let expected = expected.map(|(labels, paths, reads, acts)| (labels.to_owned(), paths.to_owned(), reads, acts));
        assert_eq!(stretches.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_moment_that_the_timeline_never_reaches_is_an_error_that_names_it() {
        let late = vec![moment("00", "inspecting", true), moment("01", "inspecting", false)];
        let error = cut_at(late, TIMELINE).unwrap_err().to_string();
        assert!(error.starts_with("01:"), "{error}");
        assert!(cut_at(vec![moment("00", "provisioned", true)], TIMELINE).is_err());
    }

    #[test]
    fn an_installation_at_work_begins_as_its_first_moment_shows_it() {
        let text = "0.6s  baremetalhosts/h gen 1: status.poweredOn: false -> true\n";
        let moments = vec![moment("00", "provisioned", false), moment("01", "provisioned", true)];
        let stretches = cut_at(moments, text).unwrap();
        assert_eq!(
            stretches
                .iter()
                .map(|stretch| stretch.moments.len())
                .collect::<Vec<_>>(),
            [1, 1]
        );
    }
}
