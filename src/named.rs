//! Names as data: an enum, the name that each value has in JSON, and what it is in words, all
//! from one table. Knows none of the tables.

/// Makes an enum of lines `Value "name" "text";`. The text is also the value's documentation: a
/// sentence without a full stop, or the few words that stand in a table.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($value:ident $name:literal $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $(#[doc = $text] #[serde(rename = $name)] $value,)+
        }

        impl $type {
            /// All values, in the order of their table.
            pub const ALL: &[$type] = &[$($type::$value,)+];

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)+
                }
            }

            /// What it is, in words.
            pub fn text(self) -> &'static str {
                match self {
                    $($type::$value => $text,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.name())
            }
        }
    };
}
