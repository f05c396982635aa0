//! Sends the same random requests to two servers and compares the responses.
//!
//! Responses are normalized first: see `tolerance`.

use futures::future::try_join_all;
use futures::try_join;
use metal3_sim_faults::Random;
use serde_json::Value;

use super::claims;
use super::operation::Operation;
use super::outcome::Violation;
use super::subject::Subject;
use super::tolerance::{self, Side};

/// The result of a seed.
#[derive(Debug)]
pub struct Comparison {
    /// The seed.
    pub seed: u64,
    /// The number of events of the concurrent watch.
    pub events: usize,
    /// All differences. Later ones may be consequences of the first.
    pub differences: Vec<String>,
}

/// Sends `operations` requests of each seed to the simulator and a real server, and compares responses and watch events.
/// The seeds run concurrently, each in a separate namespace, because most of the time is spent waiting for the real server.
///
/// # Errors
/// When a server does not respond, or the suite's kind cannot be installed.
pub async fn differ(
    simulated: kube::Client,
    real: kube::Client,
    seeds: &[u64],
    operations: u64,
    run: &str,
) -> Result<Vec<Comparison>, Violation> {
    let sides = [simulated, real].map(|client| Subject::new(client, "default", Value::Null));
    for side in &sides {
        side.install(&claims::definition()).await?;
    }
    let compared = seeds.iter().map(|seed| {
        let namespace = format!("{run}-d{seed}");
        compare(
            sides.each_ref().map(|side| side.in_namespace(&namespace)),
            *seed,
            operations,
        )
    });
    let compared = try_join_all(compared).await?;
    for side in &sides {
        side.remove(claims::DEFINITION).await?;
    }
    Ok(compared)
}

async fn compare(sides: [Subject; 2], seed: u64, operations: u64) -> Result<Comparison, Violation> {
    let mut starts = Vec::new();
    for side in &sides {
        side.make_namespace().await?;
        starts.push(side.get(&side.widget("")).await?.text("/metadata/resourceVersion"));
    }
    let watches = [Side::Simulated, Side::Real].into_iter().zip(&sides).zip(&starts);
    let watches = watches.map(|((side, subject), start)| follow(side, subject, start));
    let (seen, mut differences) = try_join!(try_join_all(watches), send(&sides, seed, operations))?;
    let [left, right] = seen.as_slice() else {
        return Err(Violation("two servers are compared".to_owned()));
    };
    let events = left.len().max(right.len());
    let at = |events: &[Value], number: usize| events.get(number).cloned().unwrap_or_default();
    let first_difference = (0..events).find(|number| left.get(*number) != right.get(*number));
    differences.extend(first_difference.map(|number| {
        format!(
            "event {number}\n  simulated: {}\n  real:      {}",
            at(left, number),
            at(right, number)
        )
    }));
    Ok(Comparison {
        seed,
        events,
        differences,
    })
}

/// The name of the last object, which ends the watch. No operation uses it.
const END: &str = "the-end";

/// The normalized events of the namespace from a version until the last object.
async fn follow(side: Side, subject: &Subject, start: &str) -> Result<Vec<Value>, Violation> {
    let ends = |event: &Value| event.pointer("/object/metadata/name") == Some(&END.into());
    let events = subject
        .watch_until(&subject.widget(&format!("?watch=1&resourceVersion={start}")), ends)
        .await?;
    Ok(tolerance::normalized_events(side, events))
}

async fn send(sides: &[Subject; 2], seed: u64, operations: u64) -> Result<Vec<String>, Violation> {
    let mut random = Random::seeded(seed);
    let mut found = Vec::new();
    for number in 0..operations {
        let operation = Operation::draw(&mut random);
        let [left, right] = sides;
        let (left, right) = try_join!(operation.run(left), operation.run(right))?;
        let applied = operation.applies();
        let left = tolerance::normalized_reply(Side::Simulated, applied, &left);
        let right = tolerance::normalized_reply(Side::Real, applied, &right);
        if left != right {
            found.push(format!(
                "operation {number} {operation:?}\n  simulated: {left}\n  real:      {right}"
            ));
        }
    }
    for side in sides {
        side.make(END).await?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator;

    /// The second simulator takes the place of the real server, to which more tolerances apply.
    #[tokio::test(start_paused = true)]
    async fn simulator_needs_no_tolerance_of_the_real_server() {
        let [one, other] = [1, 2].map(|seed| simulator(seed).client("conformance"));
        let compared = differ(one, other, &[3], 1_000, "alone").await.unwrap();
        for Comparison {
            events, differences, ..
        } in compared
        {
            assert!(events > 100, "{events} events");
            assert_eq!(differences, Vec::<String>::new());
        }
    }
}
