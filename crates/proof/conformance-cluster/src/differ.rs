//! Random requests to two servers, whose answers must be the same.
//!
//! What is tolerated is made alike first, everything else counts: see `tolerance`.

use futures::future::try_join_all;
use futures::try_join;
use metal3_sim_faults::Random;
use serde_json::Value;

use super::claims;
use super::operation::Operation;
use super::outcome::Broken;
use super::subject::Subject;
use super::tolerance::{self, Side};

/// What a seed found.
#[derive(Debug)]
pub struct Compared {
    /// The seed.
    pub seed: u64,
    /// Events of the watch that ran along, the same number on both sides unless they are among the differences.
    pub events: usize,
    /// Each difference in a line. At the first the servers' states part, so all after it may follow from it.
    pub differences: Vec<String>,
}

/// Sends `operations` requests of each seed to the simulator and a real server, and compares what a watch saw of them. The seeds run side
/// by side, each in a namespace of its own, because most of the time is spent waiting for the real server.
///
/// # Errors
/// When a server does not answer, or the suite's kind cannot be installed.
pub async fn differ(
    simulated: kube::Client,
    real: kube::Client,
    seeds: &[u64],
    operations: u64,
    run: &str,
) -> Result<Vec<Compared>, Broken> {
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

async fn compare(sides: [Subject; 2], seed: u64, operations: u64) -> Result<Compared, Broken> {
    let mut starts = Vec::new();
    for side in &sides {
        side.make_namespace().await?;
        starts.push(side.get(&side.widget("")).await?.text("/metadata/resourceVersion"));
    }
    let watches = [Side::Simulated, Side::Real].into_iter().zip(&sides).zip(&starts);
    let watches = watches.map(|((side, subject), start)| follow(side, subject, start));
    let (seen, mut differences) = try_join!(try_join_all(watches), send(&sides, seed, operations))?;
    let [left, right] = seen.as_slice() else {
        return Err(Broken("two servers are compared".to_owned()));
    };
    let events = left.len().max(right.len());
    let at = |events: &[Value], number: usize| events.get(number).cloned().unwrap_or_default();
    let parted = (0..events).find(|number| left.get(*number) != right.get(*number));
    differences.extend(parted.map(|number| {
        format!(
            "event {number}\n  simulated: {}\n  real:      {}",
            at(left, number),
            at(right, number)
        )
    }));
    Ok(Compared {
        seed,
        events,
        differences,
    })
}

/// The name of the object that is made last, to end the watch. No operation draws it.
const END: &str = "the-end";

/// All events of the namespace after a version up to the end, made alike.
async fn follow(side: Side, subject: &Subject, start: &str) -> Result<Vec<Value>, Broken> {
    let ends = |event: &Value| event.pointer("/object/metadata/name") == Some(&END.into());
    let events = subject
        .watch_until(&subject.widget(&format!("?watch=1&resourceVersion={start}")), ends)
        .await?;
    Ok(tolerance::events_alike(side, events))
}

async fn send(sides: &[Subject; 2], seed: u64, operations: u64) -> Result<Vec<String>, Broken> {
    let mut random = Random::seeded(seed);
    let mut found = Vec::new();
    for number in 0..operations {
        let operation = Operation::draw(&mut random);
        let [left, right] = sides;
        let (left, right) = try_join!(operation.run(left), operation.run(right))?;
        let applied = operation.applies();
        let left = tolerance::reply_alike(Side::Simulated, applied, &left);
        let right = tolerance::reply_alike(Side::Real, applied, &right);
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

    /// Of the one in the place of the real server more is overlooked: what the simulator does of that is a difference.
    #[tokio::test(start_paused = true)]
    async fn the_simulator_does_nothing_that_is_overlooked_of_the_real_server_alone() {
        let [one, other] = [1, 2].map(|seed| simulator(seed).client("conformance"));
        let compared = differ(one, other, &[3], 1_000, "alone").await.unwrap();
        for Compared {
            events, differences, ..
        } in compared
        {
            assert!(events > 100, "{events} events");
            assert_eq!(differences, Vec::<String>::new());
        }
    }
}
