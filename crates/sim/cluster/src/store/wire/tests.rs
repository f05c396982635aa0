use super::*;

/// What kubectl 1.36 sends.
const NAMESPACE: &str =
    "6b3873000a0f0a02763112094e616d657370616365121c0a140a0464656d6f12001a0022002a0032003800420012001a020a001a002200";
const SECRET: &str =
    "6b3873000a0c0a0276311206536563726574121d0a110a017312001a0022002a0032003800420012060a01611201621a001a002200";
const DEPLOYMENT: &str = "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412b0010a1b0a016412001a0022002a003200380042005a080a036170701201641282010801120a0a080a036170701201641a6a0a1a0a0012001a0022002a003200380042005a080a03617070120164124c122e0a056e67696e7812056e67696e782a00320a0a001000185022002a0042006a007200800100880100900100a201001a00320042004a0052005800600068008201008a01009a0100c2010022020a00280038001a0c0800100018002000280038001a002200";
const SERVICE: &str = "6b3873000a0d0a02763112075365727669636512690a1f0a0373766312001a0022002a0032003800420\
                       05a0a0a03617070120373766312420a1b0a0738302d38303830120354435018502207080010903f1a0028\
                       00120a0a0361707012037376631a002209436c757374657249503a00420052005a00600068001a020a001a002200";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u32> = hexadecimal.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks_exact(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

fn message(kind: &str, raw: &[u8]) -> Vec<u8> {
    let named = [&[0x12, u8::try_from(kind.len()).unwrap()], kind.as_bytes()].concat();
    [
        MAGIC,
        &[0x0a, u8::try_from(named.len()).unwrap()],
        &named,
        &[0x12, u8::try_from(raw.len()).unwrap()],
        raw,
    ]
    .concat()
}

fn rejection(body: &[u8]) -> (u16, String) {
    let refusal = decode(body, "ConfigMap").unwrap_err();
    (refusal.code, refusal.message)
}

#[test]
fn recorded_bodies_are_decoded() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}, "spec": {}, "status": {},
    });
    assert_eq!(decode(&bytes(NAMESPACE), "Namespace").unwrap(), namespace);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}});
    assert_eq!(decode(&bytes(SECRET), "Secret").unwrap(), secret);
    let service = decode(&bytes(SERVICE), "Service").unwrap();
    let ports = json!([{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}]);
    assert_eq!(
        (&service["spec"]["ports"], &service["spec"]["type"]),
        (&ports, &json!("ClusterIP"))
    );
    let deployment = decode(&bytes(DEPLOYMENT), "Deployment").unwrap();
    let spec = json!({
        "replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "strategy": {},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{
                "name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {},
            }]},
        },
    });
    assert_eq!(deployment["spec"], spec);
}

#[test]
fn zero_of_a_pointer_stays_and_zero_of_a_value_is_omitted() {
    let account = message("ServiceAccount", &[0x20, 0x00]);
    let flag = decode(&account, "ServiceAccount").unwrap()["automountServiceAccountToken"].clone();
    assert_eq!(flag, json!(false));
    let unschedulable = message("Node", &[0x12, 0x02, 0x20, 0x00]);
    assert_eq!(decode(&unschedulable, "Node").unwrap()["spec"], json!({}));
}

#[test]
fn times_have_the_digits_of_their_form() {
    let time = [0x08, 0x80, 0xce, 0xae, 0xba, 0x06, 0x10, 0xe8, 0x07];
    let lease = [&[0x12, 0x0b, 0x22, 0x09][..], &time].concat();
    let lease = decode(&message("Lease", &lease), "Lease").unwrap();
    assert_eq!(lease["spec"]["renewTime"], "2024-12-01T00:00:00.000001Z");
    let event = [&[0x32, 0x09][..], &time].concat();
    assert_eq!(
        decode(&message("Event", &event), "Event").unwrap()["firstTimestamp"],
        "2024-12-01T00:00:00Z"
    );
}

#[test]
fn unknown_fields_and_kinds_are_rejected_with_their_kind() {
    let (code, why) = rejection(&message("ConfigMap", &[0xf8, 0x01, 0x01]));
    assert_eq!(code, 501);
    assert!(
        why.contains("field 31 of CONFIG_MAP") && why.contains("\"ConfigMap\""),
        "{why}"
    );
    let (code, why) = rejection(&message("Ingress", &[]));
    assert_eq!(code, 501);
    assert!(why.contains("\"Ingress\""), "{why}");
}

#[test]
fn malformed_bodies_are_rejected() {
    for (raw, why) in [
        (&[0x0a, 0x05, 0x01][..], "unexpected EOF"),
        (&[0x0a], "unexpected EOF"),
        (&[0x08, 0x01], "wrong encoding"),
        (&[0x0d, 0, 0, 0, 0], "encoding of a field is unknown"),
        (&[0xff; 11], "integer overflow"),
        (&[0x0a, 0x03, 0x0a, 0x01, 0xff], "not UTF-8"),
    ] {
        let (code, found) = rejection(&message("ConfigMap", raw));
        assert_eq!(code, 400, "{found}");
        assert!(found.contains(why), "{found}");
    }
    assert_eq!(rejection(b"{}").0, 400);
    assert_eq!(rejection(&vec![0; LARGEST + 1]).0, 413);
}

#[test]
fn no_prefix_of_a_body_panics() {
    let body = bytes(DEPLOYMENT);
    for end in MAGIC.len()..body.len() {
        let mut changed = body.clone();
        changed[end] ^= 0x5a;
        drop(decode(&changed, "Deployment"));
        drop(decode(&body[..end], "Deployment"));
    }
}

fn inner(form: &'static Form) -> Option<&'static Message> {
    match form {
        Form::One(message) | Form::Inline(message) | Form::Keyed(_, message) => Some(message),
        Form::Many(form) | Form::Map(form) | Form::Union(form) => inner(form),
        _ => None,
    }
}

fn depth(message: &'static Message, at: usize) -> usize {
    assert!(at < 20, "{} contains itself", message.name);
    let inside = message.fields.iter().filter_map(|field| inner(&field.form));
    inside.map(|message| depth(message, at + 1)).max().unwrap_or(at)
}

/// Kinds without a table: the server rejects their binary bodies.
const WITHOUT: [&str; 10] = [
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Endpoints",
    "Ingress",
    "Job",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ReplicationController",
    "StatefulSet",
];

#[test]
fn tables_bound_the_depth_and_have_each_number_and_merge_key_once() {
    for kind in crate::TAKEN_AS_GIVEN.map(|(kind, _)| kind) {
        let Some(table) = table(kind) else {
            assert!(WITHOUT.contains(&kind), "{kind}");
            continue;
        };
        assert!(depth(table, 0) > 0);
        check(table);
    }
}

fn check(message: &'static Message) {
    let mut numbers: Vec<u32> = message.fields.iter().map(|field| field.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), message.fields.len(), "{}", message.name);
    for field in message.fields {
        if let Form::Keyed(key, of) = &field.form {
            assert!(of.form(key).is_some(), "{} {key}", of.name);
        }
        if let Some(inside) = inner(&field.form) {
            check(inside);
        }
    }
}
