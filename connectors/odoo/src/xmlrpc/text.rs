//! Character data of XML: what may stand in it, and how it is read exactly once.

/// Whether XML 1.0 can carry the character as itself.
fn is_carried(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a text arrives as it was sent. A carriage return does not: parsers turn it into a line
/// feed.
pub(super) fn survives_the_wire(text: &str) -> bool {
    text.chars().all(|c| is_carried(c) && c != '\r')
}

/// Whether the text between two tags is character data in which every reference is one that we can
/// read.
pub(super) fn is_plain_character_data(text: &str) -> bool {
    !text.contains("]]>") && text.chars().all(is_carried) && unescape(text).is_some()
}

/// Replaces every reference by its character, once; `None` if one cannot be read.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once('&') {
        plain.push_str(before);
        let (name, after) = reference.split_once(';')?;
        plain.push(character(name)?);
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => {}
    }
    let number = name.strip_prefix('#')?;
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, radix).ok()?).filter(|c| is_carried(*c))
}
