//! Terminal output: hosts, machines, the trees of clusters and what is waited for, while they change.

mod screen;
mod snapshot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use metal3_sim_capi::watch::{WatchEvent, follow};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use super::world::{World, all_kinds};
use screen::Screen;
pub(super) use snapshot::Snapshot;

/// The time of a full screen moves on this often, in real time.
const TICK: Duration = Duration::from_millis(500);
/// Changes come in bursts, which are shown together.
const BURST: Duration = Duration::from_millis(100);
/// An explanation looks at all objects: so often at most.
const EXPLAINED: Duration = Duration::from_millis(500);

/// A snapshot that follows the world through watches, and shows it.
pub(super) struct Display {
    snapshot: Snapshot,
    events: UnboundedReceiver<(&'static str, WatchEvent)>,
    clock: Arc<dyn Clock>,
    began: Monotonic,
    view: View,
    /// What was waited for, and when.
    waits: (Vec<String>, Duration),
    /// How many times faster than real time the time of the runtime passes.
    speed: u32,
    _tasks: JoinSet<()>,
}

/// How changes are shown.
enum View {
    /// A terminal: all of it is drawn again and again.
    Screen(Screen),
    /// Lines for what has changed.
    Lines(Lines),
}

/// The last printed lines.
#[derive(Debug, Default)]
struct Lines {
    rows: BTreeMap<(&'static str, Key), String>,
    waits: Vec<String>,
}

impl Display {
    /// Shows a world on a terminal or as lines. `title` is the first line of a screen.
    pub(super) fn of(world: &World, clock: Arc<dyn Clock>, is_terminal: bool, title: &str, speed: u32) -> Self {
        let (to, events) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for kind in all_kinds().iter().filter(|kind| snapshot::is_watched(kind)) {
            let (kind, name) = (kind.clone(), kind.kind);
            let client = world.cluster.client("display");
            tasks.spawn(follow(client, kind, None, to.clone(), move |events| (name, events)));
        }
        Self {
            snapshot: Snapshot::default(),
            events,
            began: clock.monotonic(),
            clock,
            view: if is_terminal {
                View::Screen(Screen::new(title))
            } else {
                View::Lines(Lines::default())
            },
            waits: (Vec::new(), Duration::ZERO),
            speed,
            _tasks: tasks,
        }
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.monotonic().since(self.began)
    }

    /// A line that stays: above the picture of a terminal.
    pub(super) fn say(&mut self, line: &str) {
        match &mut self.view {
            View::Screen(screen) => screen.say(line),
            View::Lines(_) => println!("{line}"),
        }
        self.show();
    }

    /// Shows changes until the condition holds.
    pub(super) async fn until(&mut self, condition: impl Fn(&Snapshot) -> bool) {
        while !condition(&self.snapshot) {
            self.next().await;
        }
    }

    /// Shows changes until the work is done.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.next() => {}
            }
        }
    }

    /// Ends a full screen, so that the following lines are printed one below the other.
    pub(super) fn close(&mut self) {
        if let View::Screen(_) = &self.view {
            let (rows, waits) = (rows(&self.snapshot), self.waits.0.clone());
            self.view = View::Lines(Lines { rows, waits });
        }
    }

    /// Waits for a change, or for the time of a screen to move on, and shows it.
    async fn next(&mut self) {
        let pause = match self.view {
            View::Screen(_) => TICK.saturating_mul(self.speed),
            View::Lines(_) => Duration::MAX,
        };
        if let Ok(Some((kind, events))) = tokio::time::timeout(pause, self.events.recv()).await {
            self.snapshot.take(kind, events);
            tokio::time::sleep(BURST.saturating_mul(self.speed)).await;
        }
        while let Ok((kind, events)) = self.events.try_recv() {
            self.snapshot.take(kind, events);
        }
        self.show();
    }

    fn show(&mut self) {
        let elapsed = self.elapsed();
        let (waits, explained) = &mut self.waits;
        let is_due = elapsed.saturating_sub(*explained) >= EXPLAINED.saturating_mul(self.speed);
        if is_due || waits.is_empty() {
            (*waits, *explained) = (self.snapshot.waits(), elapsed);
        }
        match &mut self.view {
            View::Screen(screen) => screen.draw(&self.snapshot, waits, elapsed),
            View::Lines(lines) => lines.print(rows(&self.snapshot), waits, elapsed),
        }
    }
}

/// One line for each host and machine.
fn rows(snapshot: &Snapshot) -> BTreeMap<(&'static str, Key), String> {
    let rows = snapshot.rows().into_iter();
    rows.map(|(kind, key, row)| ((kind, key), row)).collect()
}

impl Lines {
    /// Prints what differs from the last lines.
    fn print(&mut self, rows: BTreeMap<(&'static str, Key), String>, waits: &[String], elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let is_new = |(place, row): &(&(&'static str, Key), &String)| self.rows.get(*place) != Some(*row);
        rows.iter()
            .filter(is_new)
            .for_each(|(_, row)| println!("{seconds:6.1} s  {row}"));
        waits
            .iter()
            .filter(|wait| !self.waits.contains(wait))
            .for_each(|wait| println!("{seconds:6.1} s  waits    {wait}"));
        self.rows = rows;
        self.waits = waits.to_vec();
    }
}
