//! The rows of the tables: numbers, names and forms of fields.

/// The fields of a message.
#[derive(Debug)]
pub(in crate::store) struct Message {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// Its name in JSON; without a meaning for [`Form::Inline`].
    pub(super) name: &'static str,
    pub(super) form: Form,
}

/// The form of a field. The server omits empty texts, zeros and false from JSON, except in the forms that begin with `Set`:
/// these are pointers or required.
#[derive(Debug)]
pub(in crate::store) enum Form {
    Text,
    SetText,
    Int,
    SetInt,
    Flag,
    SetFlag,
    /// Base64 in JSON.
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrText,
    /// A message with one field that contains JSON.
    Json,
    One(&'static Message),
    /// A message whose fields are those of its parent in JSON.
    Inline(&'static Message),
    /// A map with texts as keys.
    Map(&'static Form),
    /// A list that a strategic merge patch replaces.
    Many(&'static Form),
    /// A list of values that a strategic merge patch extends.
    Union(&'static Form),
    /// A list of messages that a strategic merge patch merges by a key.
    Keyed(&'static str, &'static Message),
}

impl Message {
    /// The form of a field, also of an inlined message.
    pub(in crate::store) fn form(&self, name: &str) -> Option<&'static Form> {
        self.fields.iter().find_map(|field| match &field.form {
            Form::Inline(message) => message.form(name),
            form => (field.name == name).then_some(form),
        })
    }
}

/// Messages: name, and number, name and form of each field.
macro_rules! messages {
    ($($message:ident { $($number:literal $name:ident $form:expr),* $(,)? })*) => {
        $(pub(super) static $message: Message = Message {
            name: stringify!($message),
            fields: &[$(Field { number: $number, name: stringify!($name), form: $form }),*],
        };)*
    };
}
pub(super) use messages;
