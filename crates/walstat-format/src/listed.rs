//! Macros for lists that would otherwise be written several times: the values of an enum with their names and
//! texts, and the fields of a struct of sums. The lists themselves are where the macros are used.

/// Makes an enum of lines `Value "name" "text";`. The text is also the value's documentation: a
/// sentence without a full stop, or the few words that stand in a table.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($value:ident $name:literal $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $(#[doc = $text] #[serde(rename = $name)] $value,)+
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$($name),+]})
            }
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

        /// Its name.
        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.name())
            }
        }
    };
}

/// Makes a struct of sums, each a `u64`, that can be added to another of its kind.
#[macro_export]
macro_rules! sums {
    ($(#[$meta:meta])* pub struct $type:ident { $($(#[$about:meta])* $field:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $type {
            $($(#[$about])* pub $field: u64,)+
        }

        impl $type {
            /// Adds `other`.
            ///
            /// # Panics
            ///
            /// When a sum is more than there can be: sums that others have written may say anything.
            pub fn add(&mut self, other: &$type) {
                let mut is_too_much = false;
                $({
                    let (sum, overflows) = self.$field.overflowing_add(other.$field);
                    self.$field = sum;
                    is_too_much |= overflows;
                })+
                assert!(!is_too_much, "sums are more than there can be");
            }
        }
    };
}
