//! The encoding itself: numbers of fields, variable-length integers and bytes with a length.

// Texts of a real server.
const SHORT: &str = "unexpected EOF";
const LONG: &str = "proto: integer overflow";

/// The encoded value of a field.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The rest of a message.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number and value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Item<'a>)>, &'static str> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| "the number of a field is out of range")?;
        let item = match tag & 7 {
            0 => Item::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| SHORT)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
                self.0 = rest;
                Item::Bytes(bytes)
            }
            _ => return Err("the encoding of a field is unknown"),
        };
        Ok(Some((number, item)))
    }

    /// An integer of at most ten bytes.
    pub(super) fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(SHORT)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(LONG)
    }
}

impl<'a> Item<'a> {
    pub(super) const fn bytes(&self) -> Result<&'a [u8], &'static str> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err("a field has the wrong encoding"),
        }
    }

    pub(super) fn text(&self) -> Result<&'a str, &'static str> {
        str::from_utf8(self.bytes()?).map_err(|_| "a text is not UTF-8")
    }

    pub(super) const fn number(&self) -> Result<i64, &'static str> {
        match self {
            Self::Number(number) => Ok(number.cast_signed()),
            Self::Bytes(_) => Err("a field has the wrong encoding"),
        }
    }
}
