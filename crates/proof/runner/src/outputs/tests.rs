use super::requests::{Requests, differences as differing};
use super::*;

#[test]
fn page_is_what_the_commands_print_and_looking_costs_the_managers_no_request() {
    let found = differences(&section().unwrap()).unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn another_output_is_a_difference() {
    let found = differences("\n## Another\n").unwrap();
    assert!(found.iter().any(|line| line.contains("## Another")), "{found:?}");
}

#[test]
fn request_that_is_sent_only_when_a_user_looks_is_a_difference() {
    let of = |counts: &[(&str, u64)]| {
        let counts = counts.iter().map(|(what, number)| ((*what).to_owned(), *number));
        Requests(counts.collect())
    };
    let without = of(&[("capm3 get machines", 3)]);
    let with = of(&[("capm3 get machines", 3), ("hosts list secrets", 1)]);
    assert_eq!(differing(&without, &with), ["hosts list secrets: 0 without, 1 with"]);
    assert!(differing(&with, &with).is_empty());
}

#[test]
fn outputs_of_a_report_become_a_section_and_replace_it() {
    let report = |output: &str| format!("# Life\n\nx\n\n## kubectl metal3\n\n```text\n{output}\n```\n");
    let once = with_real("# Page\n", &report("$ a")).unwrap();
    assert!(once.starts_with("# Page\n\n## On the real servers\n"), "{once}");
    let twice = with_real(&once, &report("$ b")).unwrap();
    assert_eq!(twice, once.replace("$ a", "$ b"));
    assert!(with_real("# Page\n", "# Life\n").is_err());
}
