//! A target: a parser, its property, and what the generator must know.

use serde_json::Value;

use metal3_sim_faults::Random;

/// The answer of a parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What was parsed, as text that shows its structure. For many targets the parser accepts this text again.
    Accepted(String),
    /// The message of the error.
    Rejected(String),
}

impl Answer {
    /// What was parsed.
    #[must_use]
    pub fn accepted(&self) -> Option<&str> {
        match self {
            Self::Accepted(text) => Some(text),
            Self::Rejected(_) => None,
        }
    }

    /// The answer for a result.
    pub fn of<T, E: ToString>(result: Result<T, E>, show: impl FnOnce(T) -> String) -> Self {
        match result {
            Ok(value) => Self::Accepted(show(value)),
            Err(error) => Self::Rejected(error.to_string()),
        }
    }

    /// The answer for a parser without error messages.
    pub fn some<T>(result: Option<T>, show: impl FnOnce(T) -> String) -> Self {
        Self::of(result.ok_or("rejected"), show)
    }
}

/// A parser. Tests wrap it, to plant a defect.
pub type Parse<'a> = &'a dyn Fn(&[u8]) -> Answer;

/// A property of the answer to an input. It calls the parser again only through its argument.
pub type Property = fn(&[u8], &Answer, Parse<'_>) -> Result<(), String>;

/// How inputs are generated.
#[derive(Clone, Copy)]
pub enum Shape {
    /// Text: pieces are inserted, removed, repeated and exchanged.
    Text,
    /// YAML: as text, and its tree as JSON.
    Yaml,
    /// JSON: nodes of the tree as well. One of ten inputs is changed as text.
    Json,
    /// JSON that begins as a document of this function, mostly.
    Document(fn(&mut Random) -> Value),
}

/// A target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also of the folder of its corpus.
    pub name: &'static str,
    /// The shape of its inputs.
    pub shape: Shape,
    /// Words of its grammar.
    pub words: &'static [&'static str],
    /// The parser.
    pub parse: fn(&[u8]) -> Answer,
    /// Its property.
    pub property: Property,
    /// A structure that is rare among accepted inputs: the parsed value shows all these texts. The planted defect of the
    /// tests is there, and no file of the corpus reaches it.
    pub rare: &'static [&'static str],
}

impl Target {
    /// A target with text as input.
    pub(crate) const fn text(
        name: &'static str,
        words: &'static [&'static str],
        parse: fn(&[u8]) -> Answer,
        property: Property,
        rare: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            shape: Shape::Text,
            words,
            parse,
            property,
            rare,
        }
    }

    /// A target with JSON as input.
    pub(crate) const fn json(
        name: &'static str,
        words: &'static [&'static str],
        parse: fn(&[u8]) -> Answer,
        property: Property,
        rare: &'static [&'static str],
    ) -> Self {
        let shape = Shape::Json;
        Self {
            shape,
            ..Self::text(name, words, parse, property, rare)
        }
    }

    /// The target with YAML as input.
    pub(crate) const fn yaml(self) -> Self {
        let shape = Shape::Yaml;
        Self { shape, ..self }
    }

    /// The target with drawn documents as input.
    pub(crate) const fn drawn(self, draw: fn(&mut Random) -> Value) -> Self {
        let shape = Shape::Document(draw);
        Self { shape, ..self }
    }
}

/// Text of the bytes.
#[must_use]
pub fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// Property: the parser accepts what it printed, and prints it again.
pub fn prints_what_it_reads(_input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let Some(printed) = answer.accepted() else {
        return Ok(());
    };
    let again = parse(printed.as_bytes());
    if again.accepted() == Some(printed) {
        return Ok(());
    }
    Err(format!("{printed:?} is read as {again:?}"))
}

/// Property: the answer depends on the input alone, and an error has a message.
pub fn answers_alike(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if matches!(answer, Answer::Rejected(message) if message.is_empty()) {
        return Err("an error without a message".to_owned());
    }
    let again = parse(input);
    if again == *answer {
        return Ok(());
    }
    Err(format!("the second answer is {again:?}"))
}
