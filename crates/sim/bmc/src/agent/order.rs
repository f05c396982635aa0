//! An order to write an image: the arguments of the deploy step `write_image`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

/// The digests that the agent supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// 32 digits. Only if Ironic allows it.
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

/// The expected checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// A digest.
    Digest(Algorithm, String),
    /// The address of a checksum file.
    At(String),
}

impl Checksum {
    /// Parses the checksum of an order, or of a line in a checksum file.
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

/// Why an order is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// This field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The checksum is invalid.
    #[error("the checksum is neither an address nor an MD5, SHA-256 or SHA-512 digest")]
    Checksum,
    /// The authorization is no text in base64.
    #[error("image_info.image_request_authorization is no text in base64")]
    Authorization,
}

/// A value of the header `Authorization`. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(pub String);

impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authorization(..)")
    }
}

/// An order to write an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOrder {
    /// Ironic's name for the image.
    pub id: String,
    /// The address of the image.
    pub url: String,
    /// `raw`, `qcow2`, ..., if specified.
    pub format: Option<String>,
    /// The expected checksum.
    pub checksum: Checksum,
    /// The header `Authorization` of the download.
    pub authorization: Option<Authorization>,
    /// The node.
    pub node: String,
    /// A gzipped ISO in base64, or its address.
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
            authorization: text("/image_info/image_request_authorization")
                .map(authorization)
                .transpose()?,
            node: text("/image_info/node_uuid").unwrap_or_default().to_owned(),
            config_drive: text("/configdrive").map(str::to_owned),
        })
    }
}

fn authorization(encoded: &str) -> Result<Authorization, OrderError> {
    let decoded = STANDARD.decode(encoded).map_err(|_| OrderError::Authorization)?;
    let text = String::from_utf8(decoded).map_err(|_| OrderError::Authorization)?;
    Ok(Authorization(text))
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

    #[test]
    fn authorization_of_the_download_is_decoded_and_never_shown() {
        let order = |encoded: &str| {
            ImageOrder::parse(&json!({ "image_info": {
                "checksum": "a".repeat(64), "urls": ["http://r/"], "image_request_authorization": encoded,
            } }))
        };
        let found = order("QmVhcmVyIFQ=").unwrap();
        assert_eq!(found.authorization, Some(Authorization("Bearer T".to_owned())));
        assert!(!format!("{found:?}").contains("Bearer T"));
        assert_eq!(order("?").unwrap_err(), OrderError::Authorization);
    }
}
