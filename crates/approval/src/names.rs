//! Enums whose values have one text each.

/// Declares an enum with a text for each value: `as_str`, `ALL`, `Display` and `FromStr`.
macro_rules! names {
    (
        $(#[$doc:meta])*
        $name:ident as $what:literal {
            $( $(#[$variant_doc:meta])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// The text of this value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::UnknownName> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == text)
                    .ok_or_else(|| $crate::UnknownName::new($what, text))
            }
        }
    };
}

pub(crate) use names;

use countersign_canon::Quoted;

/// The text names no value of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is no {what}", Quoted(text))]
pub struct UnknownName {
    what: &'static str,
    text: String,
}

impl UnknownName {
    pub(crate) fn new(what: &'static str, text: &str) -> Self {
        Self {
            what,
            text: text.to_owned(),
        }
    }
}
