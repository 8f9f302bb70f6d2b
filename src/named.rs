//! Names as data: an enum, the name that each value has in JSON, and a sentence on it, all from
//! one table. Knows none of the tables.

/// Makes an enum of lines `Value "name" "sentence";`. The sentence is also the value's
/// documentation; it begins with a capital and has no full stop.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($value:ident $name:literal $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $(#[doc = $sentence] #[serde(rename = $name)] $value,)+
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

            /// What it is, in a sentence without a full stop.
            pub fn sentence(self) -> &'static str {
                match self {
                    $($type::$value => $sentence,)+
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
