//! Closed vocabularies: enums whose values have one text each.

use countersign_approval::{ApprovalMode, SideEffect};

/// A closed vocabulary.
pub(crate) trait Word: Copy + 'static {
    /// Every value, in order.
    const WORDS: &'static [Self];

    /// The text of a value.
    fn text(self) -> &'static str;

    /// The value with this text.
    fn named(text: &str) -> Option<Self> {
        let mut words = Self::WORDS.iter().copied();
        words.find(|word| word.text() == text)
    }
}

/// Declares an enum with a text for each value.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident {
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

        impl $crate::word::Word for $name {
            const WORDS: &'static [Self] = Self::ALL;

            fn text(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

pub(crate) use words;

impl Word for SideEffect {
    const WORDS: &'static [Self] = Self::ALL;

    fn text(self) -> &'static str {
        self.as_str()
    }
}

impl Word for ApprovalMode {
    const WORDS: &'static [Self] = Self::ALL;

    fn text(self) -> &'static str {
        self.as_str()
    }
}
