//! Terminal output: hosts, machines, the trees of clusters and what is waited for, while they change.

mod lines;
mod screen;
mod snapshot;

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use metal3_sim_capi::watch::{WatchEvent, follow};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use super::world::{World, all_kinds};
use lines::{Lines, rows};
pub(super) use screen::Head;
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
    notices: Notices,
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

/// Lines of others, such as the console. While a picture is shown they are part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Notices(Arc<Mutex<Option<Vec<String>>>>);

impl Notices {
    pub(super) fn say(&self, line: String) {
        match &mut *self.0.lock() {
            Some(kept) => kept.push(line),
            None => say!("{line}"),
        }
    }

    /// From now on lines are kept.
    fn keep(&self) {
        self.0.lock().get_or_insert_default();
    }

    /// The lines since the last call.
    fn take(&self) -> Vec<String> {
        self.0.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on lines are printed.
    fn end(&self) {
        *self.0.lock() = None;
    }
}

impl Display {
    /// Shows a world as lines, or with a head on a terminal.
    pub(super) fn of(
        world: &World,
        clock: Arc<dyn Clock>,
        (head, notices): (Option<Head>, Notices),
        speed: u32,
    ) -> Self {
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
            view: match head {
                Some(head) => {
                    notices.keep();
                    View::Screen(Screen::new(head))
                }
                None => View::Lines(Lines::default()),
            },
            notices,
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

    /// A line that stays, about a world that is shown as it is now: above the picture of a terminal.
    pub(super) async fn say(&mut self, line: &str) {
        self.catch_up().await;
        match &mut self.view {
            View::Screen(screen) => screen.say(line),
            View::Lines(_) => say!("{line}"),
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

    /// Ends a full screen, so that the following lines are printed one below the other. The snapshot is that of now.
    pub(super) async fn close(&mut self) {
        self.catch_up().await;
        if let View::Screen(_) = &self.view {
            let lines = Lines::after(&self.snapshot, &self.waits.0);
            self.view = View::Lines(lines);
            let rest = self.notices.take();
            self.notices.end();
            rest.iter().for_each(|line| say!("{line}"));
        }
    }

    /// Takes and shows all that has happened. The time of a script passes only when nothing is left to do, so that each watch has
    /// sent its changes.
    async fn catch_up(&mut self) {
        tokio::time::sleep(BURST).await;
        self.take();
        self.waits = (self.snapshot.waits(), self.elapsed());
        self.show();
    }

    fn take(&mut self) {
        while let Ok((kind, events)) = self.events.try_recv() {
            self.snapshot.take(kind, events);
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
        self.take();
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
            View::Screen(screen) => {
                self.notices.take().iter().for_each(|line| screen.say(line));
                screen.draw(&self.snapshot, waits, elapsed);
            }
            View::Lines(lines) => lines.print(rows(&self.snapshot), waits, elapsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_are_part_of_a_picture() {
        crate::out::tests::taken();
        let notices = Notices::default();
        notices.say("a".to_owned());
        notices.keep();
        notices.say("b".to_owned());
        assert_eq!(crate::out::tests::taken(), "a\n");
        assert_eq!((notices.take(), notices.take()), (vec!["b".to_owned()], Vec::new()));
        notices.end();
        notices.say("c".to_owned());
        assert_eq!(crate::out::tests::taken(), "c\n");
    }
}
