//! Every order of a page, a read and changes of two nodes.
//!
//! A request has three moments: it is sent, Ironic reads its database, the response arrives. Between them anything may
//! happen. A lost change is one that neither an event nor a read has shown after the next undisturbed round.

use std::time::Duration;

use metal3_domain::clock::Monotonic;

use super::fixture::{Fixture, uuid};
use crate::feed::{ListedNode, PageRequest, Step};
use crate::model::node::Node;
use crate::model::page::Page;

const NODES: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The page is sent, then evaluated, then answered.
    Page,
    /// The same for the read of this node.
    Read(usize),
    /// The node changes.
    Change(usize),
}

enum Request<Asked, Answer> {
    Idle,
    Sent(Asked),
    Evaluated(Asked, Answer),
}

struct World {
    fixture: Fixture,
    page: Request<PageRequest, Option<Page<ListedNode>>>,
    read: Request<(usize, Monotonic), Node>,
    /// When each record became outdated, oldest first.
    outdated: Vec<(Node, Monotonic)>,
}

impl World {
    fn new(single_nodes: bool) -> Self {
        let mut fixture = Fixture::with_nodes(NODES);
        fixture.single_nodes = single_nodes;
        fixture.run(Duration::from_secs(60));
        Self {
            fixture,
            page: Request::Idle,
            read: Request::Idle,
            outdated: Vec::new(),
        }
    }

    /// Whether the moment is possible now.
    fn admits(&self, moment: Moment) -> bool {
        match (moment, &self.read) {
            (Moment::Read(node), Request::Sent((of, _)) | Request::Evaluated((of, _), _)) => node == *of,
            _ => true,
        }
    }

    fn pass(&mut self, moment: Moment) {
        // No two moments are at the same time.
        self.fixture.advance(Duration::from_millis(300));
        match moment {
            Moment::Page => self.pass_page(),
            Moment::Read(node) => self.pass_read(node),
            Moment::Change(node) => {
                self.outdated.push((self.fixture.record(node), self.fixture.now()));
                self.fixture.change(node, 0);
            }
        }
        self.check_ages();
    }

    fn pass_page(&mut self) {
        self.page = match std::mem::replace(&mut self.page, Request::Idle) {
            Request::Idle => loop {
                match self.fixture.tracker.next(self.fixture.now()) {
                    Step::Wait(time) => self.fixture.advance(time),
                    Step::Fetch(request) => break Request::Sent(request),
                }
            },
            Request::Sent(request) => {
                let page = self.fixture.page(&request);
                Request::Evaluated(request, page)
            }
            Request::Evaluated(_, page) => {
                let (now, server) = (self.fixture.now(), Some(self.fixture.server_time()));
                let events = self.fixture.tracker.answered(now, page.unwrap(), server);
                self.fixture.receive(events);
                Request::Idle
            }
        };
    }

    fn pass_read(&mut self, node: usize) {
        self.read = match std::mem::replace(&mut self.read, Request::Idle) {
            Request::Idle => Request::Sent((node, self.fixture.now())),
            Request::Sent(asked) => Request::Evaluated(asked, self.fixture.record(node)),
            Request::Evaluated((_, asked), record) => {
                self.fixture.answer_read(record, asked);
                Request::Idle
            }
        };
    }

    /// A record is not called newer than it is.
    fn check_ages(&self) {
        for number in 0..NODES {
            let tracker = &self.fixture.tracker;
            let (stored, as_of) = (
                tracker.node(&uuid(number)).unwrap(),
                tracker.as_of(&uuid(number)).unwrap(),
            );
            let ended = self.outdated.iter().find(|(record, _)| *record == *stored);
            assert!(
                ended.is_none_or(|(_, at)| as_of <= *at),
                "node {number} is called as of {as_of:?} and changed at {:?}",
                ended.map(|(_, at)| at)
            );
        }
    }

    /// Ends the requests under way, and polls until whole rounds have passed.
    fn settle(&mut self) {
        if let Request::Sent((node, _)) | Request::Evaluated((node, _), _) = self.read {
            while !matches!(self.read, Request::Idle) {
                self.pass(Moment::Read(node));
            }
        }
        while !matches!(self.page, Request::Idle) {
            self.pass(Moment::Page);
        }
        self.fixture.run(Duration::from_secs(11));
        self.check_ages();
    }
}

fn all(depth: usize, moments: &[Moment], so_far: &mut Vec<Moment>, check: &mut impl FnMut(&[Moment]) -> bool) {
    if !check(so_far) || depth == 0 {
        return;
    }
    for moment in moments {
        so_far.push(*moment);
        all(depth - 1, moments, so_far, check);
        so_far.pop();
    }
}

#[test]
fn no_order_of_a_page_a_read_and_changes_loses_a_change() {
    let moments = [
        Moment::Page,
        Moment::Read(0),
        Moment::Read(1),
        Moment::Change(0),
        Moment::Change(1),
    ];
    for single_nodes in [false, true] {
        let mut passed = 0;
        all(6, &moments, &mut Vec::new(), &mut |order| {
            let mut world = World::new(single_nodes);
            for moment in order {
                if !world.admits(*moment) {
                    return false;
                }
                world.pass(*moment);
            }
            world.settle();
            let lost = world.fixture.differences();
            assert!(lost.is_empty(), "nodes {lost:?} after {order:?}");
            passed += 1;
            true
        });
        assert!(passed > 5_000, "{passed}");
    }
}
