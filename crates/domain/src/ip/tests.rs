use super::*;

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn range4(first: &str, last: &str) -> Range<Ipv4Addr> {
    Range::try_new(v4(first), v4(last)).unwrap()
}

#[test]
fn addresses_parse_by_the_rules_of_go() {
    let rows = [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:DB8:0:0::0005", "2001:db8::5"),
        ("::", "::"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("::192.0.2.7", "::c000:207"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::ffff:c000:207", "192.0.2.7"),
    ];
    for (text, printed) in rows {
        assert_eq!(
            parse_address(text).map(|address| address.to_string()),
            Ok(printed.to_owned()),
            "{text:?}"
        );
    }
    for text in [
        "",
        " 192.0.2.7",
        "192.0.2",
        "192.0.2.07",
        "192.0.2.256",
        "192.0.2.7.1",
        "0x7f.1",
        "+1.2.3.4",
        "fe80::1%eth0",
        "[::1]",
        "1::2::3",
        "1:2:3:4:5:6:7:8::",
        "12345::",
        "1.2.3.4::",
        "192.0.2.7/24",
    ] {
        assert_eq!(parse_address(text), Err(IpTextError::Address { text: text.to_owned() }));
    }
}

#[test]
fn ipv4_within_ipv6_is_written_as_ipv4() {
    assert_eq!(address_text(v6("::ffff:0:0").into()), "0.0.0.0");
    assert_eq!(address_text(v6("::fffe:ffff:ffff").into()), "::fffe:ffff:ffff");
    assert_eq!(address_text(v6("2001:DB8::0:7").into()), "2001:db8::7");
}

#[test]
fn prefixes_keep_the_address_as_written() {
    let rows = [
        ("192.0.2.10/26", "192.0.2.10/26", "192.0.2.0", "192.0.2.63"),
        ("192.0.2.10/024", "192.0.2.10/24", "192.0.2.0", "192.0.2.255"),
        ("192.0.2.10/32", "192.0.2.10/32", "192.0.2.10", "192.0.2.10"),
        ("10.0.0.0/0", "10.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        (
            "2001:db8::5/64",
            "2001:db8::5/64",
            "2001:db8::",
            "2001:db8::ffff:ffff:ffff:ffff",
        ),
        ("::/00", "::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("::1/128", "::1/128", "::1", "::1"),
    ];
    for (text, printed, first, last) in rows {
        let prefix = AnyPrefix::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let ends = match prefix {
            AnyPrefix::V4(prefix) => [prefix.range().first().to_string(), prefix.range().last().to_string()],
            AnyPrefix::V6(prefix) => [prefix.range().first().to_string(), prefix.range().last().to_string()],
        };
        assert_eq!(
            (prefix.to_string().as_str(), ends),
            (printed, [first.to_owned(), last.to_owned()])
        );
    }
}

#[test]
fn text_that_is_no_prefix_is_refused() {
    for text in [
        "",
        "192.0.2.0",
        "192.0.2.0/",
        "192.0.2.0/33",
        "::/129",
        "::/+1",
        "::/-1",
        "::/64/64",
        "::/256",
        "::/1 ",
    ] {
        assert_eq!(
            AnyPrefix::parse(text),
            Err(IpTextError::Prefix { text: text.to_owned() })
        );
    }
    assert_eq!(
        AnyPrefix::parse("x/24"),
        Err(IpTextError::Address { text: "x".to_owned() })
    );
    let mapped = "::ffff:192.0.2.0/120";
    assert_eq!(
        AnyPrefix::parse(mapped),
        Err(IpTextError::MappedPrefix {
            text: mapped.to_owned()
        })
    );
}

#[test]
fn masks_are_written_as_addresses() {
    let rows: [(u8, Option<&str>); 5] = [
        (0, Some("0.0.0.0")),
        (8, Some("255.0.0.0")),
        (25, Some("255.255.255.128")),
        (32, Some("255.255.255.255")),
        (33, None),
    ];
    for (length, mask) in rows {
        assert_eq!(Prefix::<Ipv4Addr>::mask(length), mask.map(v4), "/{length}");
    }
    for (length, mask) in [(0, Some("::")), (64, Some("ffff:ffff:ffff:ffff::")), (129, None)] {
        assert_eq!(Prefix::<Ipv6Addr>::mask(length), mask.map(v6), "/{length}");
    }
}

#[test]
fn range_has_a_size_and_indexed_addresses() {
    let range = range4("192.0.2.10", "192.0.2.12");
    assert_eq!(range.count(), AddressCount::Exactly(3));
    assert_eq!(range.nth(2), Some(v4("192.0.2.12")));
    assert_eq!(range.nth(3), None);
    assert_eq!(range.nth(u128::MAX), None);
    assert!(Range::try_new(v4("192.0.2.12"), v4("192.0.2.10")).is_err());
}

#[test]
fn all_of_ipv6_can_be_counted() {
    let whole = Range::<Ipv6Addr>::whole();
    assert_eq!(whole.count(), AddressCount::AllOfV6);
    assert_eq!(whole.count().to_string(), "340282366920938463463374607431768211456");
    assert_eq!(whole.count().saturating(), u128::MAX);
    assert_eq!(Range::<Ipv4Addr>::whole().count(), AddressCount::Exactly(1 << 32));
    assert!(AddressCount::Exactly(u128::MAX) < AddressCount::AllOfV6);
    assert_eq!(
        AddressCount::Exactly(u128::MAX).plus(AddressCount::Exactly(1)),
        AddressCount::AllOfV6
    );
}

#[test]
fn huge_sets_work_on_intervals() {
    let network = AnyPrefix::parse("2001:db8::/64").unwrap().v6().unwrap().range();
    let mut used = IntervalSet::from_iter([Range::single(network.first()), Range::single(network.last())]);
    assert_eq!(used.first_free(network, network.first()), Some(v6("2001:db8::1")));
    assert_eq!(
        used.gaps(network).map(|gap| gap.count()).collect::<Vec<_>>(),
        [AddressCount::Exactly((1 << 64) - 2)]
    );
    used.insert(network);
    assert_eq!(used.first_free(network, network.first()), None);
    assert_eq!(used.count(), AddressCount::Exactly(1 << 64));

    let whole = IntervalSet::from_iter([Range::<Ipv6Addr>::whole()]);
    assert_eq!(whole.count(), AddressCount::AllOfV6);
    let rest = whole.difference(&used);
    assert_eq!(rest.ranges().count(), 2);
    assert_eq!(rest.union(&used), whole);
}

#[test]
fn adjacent_ranges_merge_into_one_interval() {
    let set = IntervalSet::from_iter([
        range4("192.0.2.1", "192.0.2.3"),
        range4("192.0.2.7", "192.0.2.9"),
        range4("192.0.2.4", "192.0.2.6"),
    ]);
    assert_eq!(set.ranges().collect::<Vec<_>>(), [range4("192.0.2.1", "192.0.2.9")]);
}

#[test]
fn first_free_searches_from_a_point_to_the_end_of_the_range() {
    let within = range4("192.0.2.1", "192.0.2.9");
    let used = IntervalSet::from_iter([range4("192.0.2.1", "192.0.2.2"), range4("192.0.2.6", "192.0.2.9")]);
    let rows = [
        ("0.0.0.0", Some("192.0.2.3")),
        ("192.0.2.2", Some("192.0.2.3")),
        ("192.0.2.5", Some("192.0.2.5")),
        ("192.0.2.6", None),
        ("192.0.2.10", None),
    ];
    for (from, free) in rows {
        assert_eq!(used.first_free(within, v4(from)), free.map(v4), "from {from}");
    }
}

fn entry(start: &str, end: &str, subnet: &str) -> Result<Option<String>, EntryError> {
    let text = EntryText {
        start: Some(start),
        end: Some(end),
        subnet: Some(subnet),
    };
    Ok(PoolEntry::parse(text)?.range()?.map(|range| match range {
        AnyRange::V4(range) => range.to_string(),
        AnyRange::V6(range) => range.to_string(),
    }))
}

#[test]
fn pool_entry_combines_its_members() {
    let rows = [
        ("10.0.0.1", "10.0.0.9", "", Some("10.0.0.1-10.0.0.9")),
        ("10.0.0.5", "10.0.0.5", "", Some("10.0.0.5-10.0.0.5")),
        ("10.0.0.1", "10.0.0.9", "10.0.0.0/29", Some("10.0.0.1-10.0.0.7")),
        ("10.0.0.1", "10.0.0.9", "10.0.0.0/24", Some("10.0.0.1-10.0.0.9")),
        ("10.9.0.1", "10.9.0.9", "10.0.0.0/24", None),
        ("10.0.0.0", "", "10.0.0.0/24", Some("10.0.0.0-10.0.0.255")),
        ("10.9.0.0", "", "10.0.0.0/24", None),
        ("255.255.255.250", "", "", Some("255.255.255.250-255.255.255.255")),
        ("", "", "192.168.1.10/26", Some("192.168.1.11-192.168.1.63")),
        ("", "192.168.1.20", "192.168.1.0/26", Some("192.168.1.1-192.168.1.63")),
        ("", "10.0.0.9", "", None),
        ("", "", "10.0.0.1/32", None),
        ("", "", "10.0.0.0/31", Some("10.0.0.1-10.0.0.1")),
        ("", "", "255.255.255.255/0", None),
        ("", "", "fd00::10/128", None),
        ("", "", "fd00::20/127", Some("fd00::21-fd00::21")),
        (
            "",
            "",
            "2001:db8::/64",
            Some("2001:db8::1-2001:db8::ffff:ffff:ffff:ffff"),
        ),
        (
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe",
            "",
            "",
            Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ),
    ];
    for (start, end, subnet, range) in rows {
        assert_eq!(
            entry(start, end, subnet),
            Ok(range.map(str::to_owned)),
            "{start:?} {end:?} {subnet:?}"
        );
    }
}

#[test]
fn invalid_pool_entry_is_rejected() {
    let rows = [
        ("", "", "", None, "at least one"),
        ("x", "", "", Some("start"), "not an IP address"),
        ("", "x", "", Some("end"), "not an IP address"),
        ("", "", "x", Some("subnet"), "not a prefix"),
        ("10.0.0.9", "10.0.0.1", "", Some("end"), "swap"),
        ("10.0.0.9", "::1", "", None, "mix"),
        ("10.0.0.9", "", "2001:db8::/64", None, "mix"),
        ("", "10.0.0.9", "2001:db8::/64", None, "mix"),
    ];
    for (start, end, subnet, field, cure) in rows {
        let error = entry(start, end, subnet).expect_err("refused");
        assert_eq!(error.field(), field, "{error}");
        assert!(error.to_string().contains(cure), "{error}");
    }
}

#[test]
fn range_of_one_family_holds_no_address_of_the_other() {
    let range = AnyRange::V4(Range::whole());
    assert!(range.contains(v4("10.0.0.1").into()));
    assert!(!range.contains(v6("::10.0.0.1").into()));
}
