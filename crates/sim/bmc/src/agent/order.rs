//! An order to write an image: the arguments of the deploy step `write_image`.

use serde_json::Value;

/// The digests that the agent knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// 32 digits. Only for an agent that Ironic has told that it may.
    Md5,
    /// 64 digits.
    Sha256,
    /// 128 digits.
    Sha512,
}

impl Algorithm {
    fn of_digits(digits: usize) -> Option<Self> {
        match digits {
            32 => Some(Self::Md5),
            64 => Some(Self::Sha256),
            128 => Some(Self::Sha512),
            _ => None,
        }
    }
}

/// What the image must hash to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// Given with the order.
    Digest(Algorithm, String),
    /// In a file at this address.
    At(String),
}

impl Checksum {
    /// Reads the value that stands in an order, or in a checksum file's line for the image.
    ///
    /// # Errors
    /// [`OrderError::Checksum`] when it is neither an address nor a digest of a known length.
    pub fn parse(value: &str) -> Result<Self, OrderError> {
        if value.starts_with("http://") || value.starts_with("https://") {
            return Ok(Self::At(value.to_owned()));
        }
        let digits = value.to_ascii_lowercase();
        match Algorithm::of_digits(digits.len()) {
            Some(algorithm) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                Ok(Self::Digest(algorithm, digits))
            }
            _ => Err(OrderError::Checksum),
        }
    }
}

/// Why an order cannot be obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The order lacks this field.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The checksum is none.
    #[error("the checksum is neither an address nor an MD5, SHA-256 or SHA-512 digest")]
    Checksum,
}

/// An order to write an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOrder {
    /// Ironic's name for the image.
    pub id: String,
    /// Where it is.
    pub url: String,
    /// `raw`, `qcow2`, ..., if Ironic said so.
    pub format: Option<String>,
    /// What it must hash to.
    pub checksum: Checksum,
    /// For which node.
    pub node: String,
    /// A base64 gzip of an ISO, or its address.
    pub config_drive: Option<String>,
}

impl ImageOrder {
    /// Reads the step's arguments.
    ///
    /// # Errors
    /// [`OrderError`] names the field.
    pub fn parse(args: &Value) -> Result<Self, OrderError> {
        let text = |pointer: &str| {
            args.pointer(pointer)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let checksum = text("/image_info/os_hash_value")
            .or_else(|| text("/image_info/checksum"))
            .ok_or(OrderError::Missing("image_info.os_hash_value"))?;
        Ok(Self {
            id: text("/image_info/id").unwrap_or_default().to_owned(),
            url: text("/image_info/urls/0")
                .ok_or(OrderError::Missing("image_info.urls"))?
                .to_owned(),
            format: text("/image_info/disk_format").map(str::to_owned),
            checksum: Checksum::parse(checksum)?,
            node: text("/image_info/node_uuid").unwrap_or_default().to_owned(),
            config_drive: text("/configdrive").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digest_is_known_by_its_length() {
        let digest = |algorithm, digits| Ok(Checksum::Digest(algorithm, "a".repeat(digits)));
        assert_eq!(Checksum::parse(&"A".repeat(32)), digest(Algorithm::Md5, 32));
        assert_eq!(Checksum::parse(&"A".repeat(64)), digest(Algorithm::Sha256, 64));
        assert_eq!(Checksum::parse(&"a".repeat(128)), digest(Algorithm::Sha512, 128));
        assert_eq!(Checksum::parse(&"a".repeat(40)), Err(OrderError::Checksum));
        assert_eq!(Checksum::parse(&"g".repeat(64)), Err(OrderError::Checksum));
    }

    #[test]
    fn order_without_address_names_the_field() {
        let args = json!({ "image_info": { "checksum": "a".repeat(64) } });
        assert_eq!(ImageOrder::parse(&args), Err(OrderError::Missing("image_info.urls")));
    }
}
