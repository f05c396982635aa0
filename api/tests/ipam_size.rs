//! The cost of the review of a large pool grows with its size, not with the square of its size.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_api::catalog;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::rules::{Decision, Operation};
use serde_json::{Map, Value, json};

/// Entries of the small pool, and how much larger the large pool is.
const SMALL: usize = 400;
const GROWTH: usize = 16;
/// The review of the large pool may take this many times as long as `GROWTH` reviews of the small one. Linear work takes
/// about as long, quadratic work `GROWTH` times as long.
const LIMIT: u64 = 5;

fn address(number: usize) -> String {
    format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255)
}

fn pool(ranges: Vec<Value>, pre_allocated: Map<String, Value>, granted: Map<String, Value>) -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": { "name": "p", "namespace": "metal" },
        "spec": { "namePrefix": "p", "pools": ranges, "preAllocations": pre_allocated },
        "status": { "indexes": granted },
    })
}

fn names(prefix: &str, count: usize, address: impl Fn(usize) -> String) -> Map<String, Value> {
    (0..count)
        .map(|number| (format!("{prefix}-{number}"), address(number).into()))
        .collect()
}

/// Disjoint single addresses, each with a gateway, and a pre-allocation and a grant at the end of the list.
fn disjoint(count: usize) -> (Value, Value) {
    let range = |number, gateway: &str| json!({ "start": address(number), "end": address(number), "gateway": gateway });
    let ranges = |gateway: &str| (0..count).map(|number| range(number, gateway)).collect();
    let last = |number| address(count - 1 - number % 2);
    let old = pool(ranges("9.0.0.1"), names("a", 1, last), names("b", count, address));
    (old, pool(ranges("9.0.0.2"), names("a", count, address), Map::new()))
}

/// Nested ranges, and addresses that are in none of them.
fn nested(count: usize) -> (Value, Value) {
    let ranges: Vec<_> = (0..count)
        .map(|number| json!({ "start": address(number), "end": address(4 * count - number), "gateway": "11.0.0.1" }))
        .collect();
    let outside = |number| address(5 * count + number);
    let old = pool(
        vec![json!({ "subnet": "10.0.0.0/8" })],
        Map::new(),
        names("b", count, outside),
    );
    (old, pool(ranges, names("a", count, outside), Map::new()))
}

fn review(operation: Operation, old: Option<&Value>, new: &Value) -> Decision {
    let found = catalog::reviewers()
        .into_iter()
        .find(|reviewer| reviewer.kind == "IPPool");
    (found.unwrap().review)(operation, old, Some(new)).unwrap()
}

/// The stored and the new pool with this many entries.
type Pools = fn(usize) -> (Value, Value);

/// Nanoseconds that this thread has run on a processor, so that other processes do not count.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Asserts that the work on a large pool takes time in proportion to its size.
fn assert_linear<T>(name: &str, pool: impl Fn(usize) -> T, work: impl Fn(&T)) {
    let took = |count: usize, times: usize| {
        let input = pool(count);
        let begun = processor_time();
        (0..times).for_each(|_| work(&input));
        processor_time() - begun
    };
    let (small, large) = (took(SMALL, GROWTH), took(SMALL * GROWTH, 1));
    assert!(
        large < small * LIMIT,
        "{name}: {large} ns, {small} ns in {GROWTH} parts"
    );
}

#[test]
fn the_review_of_a_pool_takes_time_in_proportion_to_its_size() {
    let shapes: [(&str, Pools); 2] = [("disjoint", disjoint), ("nested", nested)];
    for (shape, pools) in shapes {
        assert_linear(shape, pools, |(old, new)| {
            review(Operation::Create, None, new);
            review(Operation::Update, Some(old), new);
        });
    }
}

#[test]
fn granted_addresses_are_compared_in_time_in_proportion_to_the_pool() {
    let input = |count: usize| {
        let new: IPPool = serde_json::from_value(disjoint(count).1).unwrap();
        (
            count,
            new,
            (1..=20 * count)
                .map(|number| address(number % (count + 1)))
                .collect::<Vec<_>>(),
        )
    };
    assert_linear("granted", input, |(count, new, granted)| {
        let outside = new.out_of_range(granted.iter().map(String::as_str));
        assert!(!outside.is_empty() && outside.iter().all(|text| *text == address(*count)));
    });
}
