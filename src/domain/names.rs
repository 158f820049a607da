//! Ids of our own (a kind, then a time-ordered number) and names that humans chose.

use std::fmt;

use uuid::Uuid;

/// A text that is no id of that kind, or no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Not an id of the kind.
    #[error("not an id that begins with `{0}_`")]
    Id(&'static str),
    /// Not a name.
    #[error("a name has 1 to 64 of the characters A-Z a-z 0-9 . _ @ -")]
    Name,
}

macro_rules! own_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Makes the id of that number.
            pub fn from_uuid(number: Uuid) -> Self {
                Self(format!(concat!($prefix, "_{}"), number.simple()))
            }

            /// Reads an id.
            ///
            /// # Errors
            /// [`BadName`] if the text is none of this kind.
            pub fn parse(text: &str) -> Result<Self, BadName> {
                let number = text
                    .strip_prefix(concat!($prefix, "_"))
                    .filter(|digits| digits.len() == 32)
                    .and_then(|digits| Uuid::try_parse(digits).ok())
                    .ok_or(BadName::Id($prefix))?;
                let id = Self::from_uuid(number);
                if id.0 == text { Ok(id) } else { Err(BadName::Id($prefix)) }
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

own_id!(
    /// An operation: one proposal and all that became of it.
    OperationId,
    "op"
);
own_id!(
    /// A mandate in the registry.
    MandateId,
    "md"
);
own_id!(
    /// A human's vote for one operation.
    VoteId,
    "vt"
);
own_id!(
    /// A freeze.
    FreezeId,
    "fz"
);
own_id!(
    /// An alarm.
    AlarmId,
    "al"
);
own_id!(
    /// A call to a vendor.
    CallbackId,
    "cb"
);
own_id!(
    /// Something that was seen or done about a vendor's details.
    EventId,
    "ev"
);
own_id!(
    /// A session of a signed-in human. No secret: the token is another text.
    SessionId,
    "se"
);

/// The name of a human or an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Takes the text as a name.
    ///
    /// # Errors
    /// [`BadName::Name`] if it is empty, too long, or has other characters.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | '-');
        if (1..=64).contains(&text.len()) && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadName::Name)
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let id = OperationId::from_uuid(Uuid::from_u128(7));
        assert_eq!(OperationId::parse(id.as_str()), Ok(id.clone()));
        for wrong in [
            "",
            "op_",
            "op_7",
            "md_00000000000000000000000000000007",
            "op_0000000000000000000000000000000G",
        ] {
            assert!(OperationId::parse(wrong).is_err(), "`{wrong}`");
        }
        assert!(OperationId::parse(&id.as_str().to_uppercase()).is_err());
    }

    #[test]
    fn names_have_no_slash_or_space() {
        for wrong in ["", "a b", "a/b", "é", "a\n", &"a".repeat(65)] {
            assert!(Name::parse(wrong).is_err(), "`{wrong}`");
        }
        assert!(Name::parse("ap-agent").is_ok());
    }
}
