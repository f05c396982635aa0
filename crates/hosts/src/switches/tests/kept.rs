//! What stays of a switch of which something is not known, and what must not stay.

use super::*;

const KEY: &str = "aa-bb-cc-dd-ee-01.key";

fn configs(sections: &str) -> Output {
    Output::Known(secret(&[(CONFIG_KEY, format!("{HEADER}{sections}").as_bytes())]))
}

fn unknown() -> Login {
    Login::Unknown("this program may not read it".to_owned())
}

#[test]
fn file_is_written_without_the_secret_of_keys_for_switches_without_a_key() {
    let outputs = outputs();
    let stored_text = "[switch:a]\naddress=192.0.2.1\nusername=admin\npassword=canary-1\n\n\
        [switch:k]\naddress=192.0.2.9\nusername=admin\nkey_file=/etc/ironic/keys/aa-bb-cc-dd-ee-01.key\n\n";
    for keys in [Output::Absent, Output::Unknown("it was not read".to_owned())] {
        let mut facts = facts(&outputs, Vec::new());
        (facts.configs, facts.keys) = (configs(stored_text), keys);
        assert_eq!(file(&facts), HEADER, "no login of a former switch stays");
        facts.switches = vec![
            plain("b", password()),
            plain("k", private_key()),
            plain("new", private_key()),
        ];
        let text = file(&facts);
        let names: Vec<String> = stored(&text).unwrap().into_keys().collect();
        assert_eq!(names, ["b", "k"], "what was written of a switch with a key stays");
        assert!(text.contains("address=192.0.2.9\n"), "{text}");
        let planned = plan(&facts);
        assert!(report(&planned, "b").starts_with("True "), "{}", report(&planned, "b"));
        for name in ["k", "new"] {
            assert!(report(&planned, name).contains("Secret keys "), "{name}");
        }
    }
}

#[test]
fn empty_admin_password_is_none() {
    let outputs = outputs();
    let empty = secret(&[("username", b"admin"), ("password", b"p"), ("admin-password", b"")]);
    let facts = facts(&outputs, vec![plain("a", Login::Known(empty))]);
    assert!(
        file(&facts).ends_with("username=admin\npassword=p\n\n"),
        "{}",
        file(&facts)
    );
}

#[test]
fn message_fits_a_condition() {
    let outputs = outputs();
    let long = json!({ "spec": { "credentials": { "name": "ä".repeat(40_000) } } });
    for login in [
        Login::Absent,
        Login::Unlabelled,
        Login::OtherUse,
        Login::OfHost,
        unknown(),
    ] {
        let facts = facts(&outputs, vec![switch("a", &long, login)]);
        let message = report(&plan(&facts), "a");
        assert!(message.chars().count() < 1000, "{}", message.chars().count());
    }
}

/// Two entries of one switch: one has the new key, the Secret of the other cannot be read.
#[test]
fn key_that_is_kept_replaces_no_new_one_and_leaves_no_switch_out() {
    let outputs = outputs();
    for (with_new, kept) in [("a", "b"), ("b", "a")] {
        let mut switches = vec![plain(with_new, private_key()), plain(kept, unknown())];
        switches.sort_by(|one, other| one.object.metadata.name.cmp(&other.object.metadata.name));
        let mut facts = facts(&outputs, switches);
        facts.configs = configs(&format!("[switch:{kept}]\nkey_file=/etc/ironic/keys/{KEY}\n\n"));
        facts.keys = Output::Known(secret(&[(KEY, b"old")]));
        let planned = plan(&facts);
        let [_, keys] = contents(&facts, &planned, usize::MAX);
        assert_eq!(keys[KEY], "canary\nkey\n", "{with_new}");
        assert!(report(&planned, with_new).starts_with("True "), "{with_new}");
        let text = file(&facts);
        assert_eq!(stored(&text).unwrap().len(), 2, "{text}");
    }
}

/// A process may end after each write, and the switch be deleted before the next one starts.
#[test]
fn key_of_a_first_switch_goes_with_it_whenever_the_process_ends() {
    let outputs = outputs();
    for former in [None, Some("")] {
        let mut first = facts(&outputs, vec![plain("a", private_key())]);
        if let Some(text) = former {
            first.configs = Output::Known(secret(&[(CONFIG_KEY, text.as_bytes())]));
        }
        first.keys = Output::Known(secret(&[("other", b"kept")]));
        let planned = plan(&first);
        for number in 0..=planned.writes.len() {
            let data = contents(&first, &planned, number).map(|data| {
                let data: Vec<(&str, &[u8])> = data.iter().map(|(name, one)| (name.as_str(), one.as_bytes())).collect();
                Output::Known(secret(&data))
            });
            let mut after = facts(&outputs, Vec::new());
            [after.configs, after.keys] = data;
            let [_, left] = contents(&after, &plan(&after), usize::MAX);
            assert_eq!(left.keys().collect::<Vec<_>>(), ["other"], "{former:?} after {number}");
        }
    }
    // Keys without a file, or with the file of another program, are not of this program.
    for text in [None, Some("[switch:of-another]\n")] {
        let mut other = facts(&outputs, Vec::new());
        other.keys = Output::Known(secret(&[(KEY, b"of another")]));
        if let Some(text) = text {
            other.configs = Output::Known(secret(&[(CONFIG_KEY, text.as_bytes())]));
        }
        assert!(plan(&other).writes.is_empty(), "{text:?}");
    }
}

/// A user may write hosts, or so many switches that others are not read: what Ironic has of them stays.
#[test]
fn switch_whose_login_a_host_names_or_that_is_one_too_many_stays_as_it_is() {
    let outputs = outputs();
    let section = format!("[switch:a]\naddress=192.0.2.9\nkey_file=/etc/ironic/keys/{KEY}\n\n");
    for login in [
        Login::OfHost,
        Login::NotRead,
        unknown(),
        Login::Unclear("a host cannot be decoded".to_owned()),
    ] {
        let is_unwatched = matches!(login, Login::Unknown(_));
        let mut facts = facts(&outputs, vec![plain("a", login)]);
        (facts.configs, facts.keys) = (configs(&section), Output::Known(secret(&[(KEY, b"k")])));
        let planned = plan(&facts);
        assert!(planned.writes.is_empty() && !report(&planned, "a").starts_with("True "));
        assert_eq!(planned.is_unwatched, is_unwatched, "{}", report(&planned, "a"));
        facts.configs = Output::Known(secret(&[]));
        assert_eq!(file(&facts), HEADER, "what was never written is not invented");
    }
}

#[test]
fn what_no_condition_shows_is_logged() {
    let outputs = outputs();
    let log = |facts: &Facts<'_>| plan(facts).wait.filter(|wait| !wait.is_shown).map(|wait| wait.message);
    let with_former = |keys: Output| Facts {
        configs: configs("[switch:a]\npassword=canary-1\n\n"),
        keys,
        ..facts(&outputs, Vec::new())
    };
    let keys = || Output::Known(secret(&[(KEY, b"k")]));
    let refused = |which: Which| Facts {
        refused: BTreeSet::from([which]),
        ..with_former(keys())
    };
    let mut undecodable = with_former(keys());
    undecodable.unreadable = vec!["a".to_owned()];
    let unread = with_former(Output::Unknown("forbidden".to_owned()));
    let file_unread = Facts {
        configs: Output::Unknown("forbidden".to_owned()),
        ..with_former(keys())
    };
    for (facts, expected, is_unwatched) in [
        (with_former(keys()), None, false),
        (refused(Which::Configs), Some("refuses to change Secret configs"), true),
        (refused(Which::Keys), Some("refuses to change Secret keys"), true),
        (unread, Some("Secret keys cannot be read: forbidden"), true),
        (file_unread, Some("Secret configs cannot be read: forbidden"), true),
        (undecodable, Some("BareMetalSwitch a cannot be decoded"), false),
    ] {
        let said = log(&facts);
        let is_said = said
            .as_deref()
            .zip(expected)
            .is_some_and(|(said, expected)| said.contains(expected));
        assert_eq!(
            (said.is_some(), is_said),
            (expected.is_some(), expected.is_some()),
            "{said:?}"
        );
        assert_eq!(plan(&facts).is_unwatched, is_unwatched, "{expected:?}");
    }
}
