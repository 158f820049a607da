//! Orders are sealed: the ERP's side does what the store wrote down, exactly that, once, or nothing.

use aws_lc_rs::{constant_time, digest, hmac};

/// 128 random bits made at a claim. Shown to nobody: receipts hold [`Marker::digest`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Marker([u8; 16]);

/// A text that is no marker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a marker is 32 hexadecimal digits")]
pub struct MarkerError;

impl Marker {
    /// Takes random bits as a marker.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads 32 hexadecimal digits.
    ///
    /// # Errors
    /// [`MarkerError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, MarkerError> {
        let number = u128::from_str_radix(text, 16).ok().ok_or(MarkerError)?;
        let marker = Self(number.to_be_bytes());
        if marker.to_hex() == text { Ok(marker) } else { Err(MarkerError) }
    }

    /// 32 hexadecimal digits, for the store and the ERP only.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// SHA-256 of the marker's text, in hexadecimal.
    pub fn digest(&self) -> String {
        hex(digest::digest(&digest::SHA256, self.to_hex().as_bytes()).as_ref())
    }
}

impl std::fmt::Debug for Marker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Marker(…)")
    }
}

/// The key that seals orders; the ERP's side holds the same.
#[derive(Clone)]
pub struct SealKey {
    bytes: [u8; 32],
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(…)")
    }
}

/// What the ERP's side does for a store, once: written down in exactly one way, so that it can be
/// sealed.
pub trait Order {
    /// The text that is sealed: canonical JSON (RFC 8785).
    fn exact_text(&self) -> String;
}

/// An order with its exact text and seal. Only [`SealKey::seal`] makes one that the ERP's side
/// accepts.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed<O> {
    order: O,
    text: String,
    seal: String,
}

impl<O: std::fmt::Debug> std::fmt::Debug for Sealed<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Text and seal are enough to book.
        f.debug_struct("Sealed").field("order", &self.order).finish_non_exhaustive()
    }
}

impl SealKey {
    /// Takes 32 random bytes as a key.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { bytes }
    }

    /// The bytes, to install them on the ERP's side.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Writes the order down exactly and seals it.
    pub fn seal<O: Order>(&self, order: O) -> Sealed<O> {
        let text = order.exact_text();
        let seal = self.mac(&text);
        Sealed { order, text, seal }
    }

    /// Whether that seal belongs to that text, in constant time.
    pub fn verifies(&self, text: &str, seal: &str) -> bool {
        constant_time::verify_slices_are_equal(self.mac(text).as_bytes(), seal.as_bytes()).is_ok()
    }

    fn mac(&self, text: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.bytes);
        hex(hmac::sign(&key, text.as_bytes()).as_ref())
    }
}

impl<O> Sealed<O> {
    /// Puts any text and seal beside an order: what a forger sends. It gives nobody a seal that
    /// fits; only [`SealKey::seal`] does.
    #[cfg(feature = "conformance")]
    pub fn forge(order: O, text: String, seal: String) -> Self {
        Self { order, text, seal }
    }

    /// The order.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// Its exact text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The seal over that text, in hexadecimal.
    pub fn seal(&self) -> &str {
        &self.seal
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('?');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_never_shown() {
        let marker = Marker::from_bytes([0xab; 16]);
        assert_eq!(format!("{marker:?}"), "Marker(…)");
        assert_eq!(Marker::parse(&marker.to_hex()), Ok(marker.clone()));
        assert_ne!(marker.digest(), marker.to_hex());
        for wrong in ["", "ab", "+bababababababababababababababab", &"AB".repeat(16)] {
            assert_eq!(Marker::parse(wrong), Err(MarkerError));
        }
    }
}
