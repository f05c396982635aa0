//! Reads the Containerfile of the image and checks it.
//!
//! The parser supports one instruction per line, comments, flags, and JSON lists. Everything else (parser directives,
//! line continuations, here-documents) is an error, so that nothing enters the image unchecked.

use serde_json::Value;

/// One instruction: `COPY --chmod=0555 a /a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    keyword: String,
    flags: Vec<String>,
    /// Arguments: words, or the items of a JSON list.
    words: Vec<String>,
    is_list: bool,
}

/// Parses a Containerfile; an error names the line.
pub(super) fn parse(text: &str) -> Result<Vec<Instruction>, String> {
    let mut instructions = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = |why: &str| format!("line {}: {why}: {line}", number + 1);
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let word = comment.trim().split('=').next().unwrap_or_default();
            if comment.contains('=') && ["syntax", "escape", "check"].contains(&word.trim()) {
                return Err(at("a parser directive"));
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        if line.ends_with('\\') || line.ends_with('`') {
            return Err(at("a line continuation"));
        }
        if line.contains("<<") {
            return Err(at("a here-document"));
        }
        instructions.push(instruction(line).map_err(|why| at(&why))?);
    }
    Ok(instructions)
}

fn instruction(line: &str) -> Result<Instruction, String> {
    let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let mut rest = rest.trim_start();
    let mut flags = Vec::new();
    while let Some(flag) = rest.strip_prefix("--") {
        let (flag, after) = flag.split_once(char::is_whitespace).unwrap_or((flag, ""));
        flags.push(flag.to_owned());
        rest = after.trim_start();
    }
    let is_list = rest.starts_with('[');
    let words = if is_list {
        serde_json::from_str(rest).map_err(|_| "neither a list nor words".to_owned())?
    } else {
        rest.split_whitespace().map(str::to_owned).collect()
    };
    Ok(Instruction {
        keyword: keyword.to_ascii_uppercase(),
        flags,
        words,
        is_list,
    })
}

/// Permitted instructions of an image with one file.
const KNOWN: [&str; 4] = ["FROM", "COPY", "USER", "ENTRYPOINT"];

/// Instructions with a keyword.
fn with_keyword<'a>(instructions: &'a [Instruction], keyword: &str) -> Vec<&'a Instruction> {
    instructions.iter().filter(|one| one.keyword == keyword).collect()
}

/// Errors of the file as the image of this Pod.
pub(super) fn errors(instructions: &[Instruction], pod: &Value) -> Vec<String> {
    let unknown = instructions.iter().filter(|one| !KNOWN.contains(&one.keyword.as_str()));
    let mut errors: Vec<String> = unknown
        .map(|one| format!("{} is not permitted in an image without a shell", one.keyword))
        .collect();
    if instructions.first().is_none_or(|first| first.keyword != "FROM") {
        errors.push("it does not start with FROM".to_owned());
    }
    errors.extend(with_keyword(instructions, "FROM").into_iter().filter_map(base));
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    let user = format!("{}:{}", security["runAsUser"], security["runAsGroup"]);
    let users: Vec<String> = with_keyword(instructions, "USER")
        .iter()
        .map(|one| one.words.join(" "))
        .collect();
    if users != [user.as_str()] {
        errors.push(format!("USER is {users:?}, but the Pod runs as {user}"));
    }
    let command = &container["command"];
    let runs = |one: &&Instruction| one.is_list && Value::from(one.words.clone()) == *command;
    let entries = with_keyword(instructions, "ENTRYPOINT");
    if entries.len() != 1 || !entries.iter().all(runs) {
        errors.push(format!("ENTRYPOINT is not the list {command}"));
    }
    let copies = with_keyword(instructions, "COPY");
    let files: Vec<&str> = copies
        .iter()
        .filter_map(|one| one.words.last())
        .map(String::as_str)
        .collect();
    if *command != Value::from(files.clone()) {
        errors.push(format!("the image contains {files:?}"));
    }
    if !copies.iter().all(|one| one.flags == ["chmod=0555"]) {
        errors.push("a file in the image is not `--chmod=0555`".to_owned());
    }
    errors
}

/// The base must be `scratch` or have a digest.
fn base(from: &Instruction) -> Option<String> {
    let name = from.words.first().map(String::as_str).unwrap_or_default();
    let digest = name.split_once("@sha256:").map(|(_, digest)| digest);
    let is_pinned =
        digest.is_some_and(|digest| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_plain = from.words.len() == 1 && from.flags.is_empty();
    (!is_plain || (name != "scratch" && !is_pinned)).then(|| format!("FROM {name} is neither scratch nor a digest"))
}
