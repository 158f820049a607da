//! SHA-256 digests and their text.

use aws_lc_rs::digest::{Context, SHA256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// Text or bytes that are no SHA-256 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest of 64 lower case hexadecimal digits")]
pub struct NotADigest;

impl Digest {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn from_slice(bytes: &[u8]) -> Result<Self, NotADigest> {
        bytes.try_into().ok().map(Self).ok_or(NotADigest)
    }

    /// The digest of those parts, one after the other.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(part);
        }
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(context.finish().as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }

    /// Reads exactly what [`Display`](std::fmt::Display) writes.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(NotADigest);
        }
        for (to, [high, low]) in bytes.iter_mut().zip(pairs) {
            *to = nibble(*high)? << 4 | nibble(*low)?;
        }
        Ok(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self})")
    }
}

fn nibble(digit: u8) -> Result<u8, NotADigest> {
    match digit {
        b'0'..=b'9' => Ok(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Ok(digit.wrapping_sub(b'a').wrapping_add(10)),
        _ => Err(NotADigest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_text_and_nothing_else_is_one() {
        let digest = Digest::of(&[b"ab", b"c"]);
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(Digest::parse(text), Ok(digest));
        let short: String = text.chars().skip(1).collect();
        for wrong in [short, text.to_uppercase(), format!("{text}00"), String::new()] {
            assert_eq!(Digest::parse(&wrong), Err(NotADigest), "{wrong}");
        }
    }
}
