//! Macros for ids and open enums.
//!
//! An id is an opaque string. Each kind of id has its own type, so that a message id cannot be used as a tool id. An open enum
//! is a set of names that may grow. An unknown name of a newer Teamster or agent is read as `Other`, without an error.

/// Defines a string type that is cheap to clone. It is serialized as a plain string.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Returns the id as the agent wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the id with escapes, for display. The agent controls its characters, so there is no `Display`.
            pub fn escaped(&self) -> $crate::text::Escaped<'_> {
                $crate::text::Escaped(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.0, formatter)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    };
}

/// Defines an enum of names that may be extended. Unknown names are stored in `Other`.
macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $variant_doc])* $variant,)+
            /// An unknown name.
            Other(String),
        }

        impl $name {
            /// The names that this version knows, in the order of the documentation.
            pub const KNOWN: &'static [$name] = &[$($name::$variant),+];

            /// Returns the name in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }

            /// Returns the documentation of the name; empty for an unknown name.
            pub fn meaning(&self) -> &'static str {
                let text = match self {
                    $(Self::$variant => concat!($($variant_doc),*),)+
                    Self::Other(_) => "",
                };
                text.trim_start()
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
            }
        }
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": "An open set: readers must accept unknown names.",
                    "examples": [$($text),+],
                })
            }
        }
    };
}

pub(crate) use {id, open_enum};
