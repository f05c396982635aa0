//! Virtual media: drives with the address of an image, which is read at boot.

use serde_json::{Value, json};

use super::{Answer, Request, Verb, collection};
use crate::machine::{DRIVES, Machine, Media};

pub(super) fn answer(machine: &mut Machine, request: &Request<'_>, path: &[&str]) -> Option<Answer> {
    let base = format!("/redfish/v1/Systems/{}/VirtualMedia", machine.number.uuid());
    let Some((name, rest)) = path.split_first() else {
        let names = DRIVES.iter().map(|(name, _)| (*name).to_owned());
        return (request.verb == Verb::Get).then(|| Answer::ok(collection("VirtualMedia", &base, names)));
    };
    let (drive, types) = DRIVES.iter().copied().find(|(drive, _)| drive == name)?;
    match (request.verb, rest) {
        (Verb::Get, []) => Some(Answer::ok(resource(machine, &base, drive, types))),
        (Verb::Post, ["Actions", "VirtualMedia.InsertMedia"]) => Some(insert(machine, drive, request.body)),
        (Verb::Post, ["Actions", "VirtualMedia.EjectMedia"]) => {
            machine.media.remove(drive);
            Some(Answer::done())
        }
        (Verb::Patch, []) => Some(Answer::unsupported("virtual media by PATCH: use the actions")),
        _ => None,
    }
}

fn insert(machine: &mut Machine, drive: &'static str, body: &Value) -> Answer {
    let image = body.get("Image").and_then(Value::as_str);
    let Some(image) = image.filter(|image| is_fetchable(image)).map(str::to_owned) else {
        return Answer::error(400, "Image must be the http or https address of an image");
    };
    machine.media.insert(drive, Media { image });
    Answer::done()
}

fn is_fetchable(image: &str) -> bool {
    image.starts_with("http://") || image.starts_with("https://")
}

fn resource(machine: &Machine, base: &str, drive: &str, types: &[&str]) -> Value {
    let path = format!("{base}/{drive}");
    let media = machine.media.get(drive);
    json!({
        "@odata.id": path,
        "@odata.type": "#VirtualMedia.v1_4_0.VirtualMedia",
        "Id": drive,
        "Name": format!("Virtual {drive}"),
        "MediaTypes": types,
        "Image": media.map(|media| media.image.as_str()),
        "ImageName": media.map(|media| media.image.rsplit('/').next()),
        "Inserted": media.is_some(),
        "WriteProtected": true,
        "ConnectedVia": if media.is_some() { "URI" } else { "NotConnected" },
        "Actions": {
            "#VirtualMedia.InsertMedia": { "target": format!("{path}/Actions/VirtualMedia.InsertMedia") },
            "#VirtualMedia.EjectMedia": { "target": format!("{path}/Actions/VirtualMedia.EjectMedia") },
        },
    })
}
