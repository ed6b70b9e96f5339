//! Files to send with a prompt.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A file for the model, by path or by content. The runtime reads the path at the start.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Attachment {
    /// A file of this machine. A relative path is resolved against the run's working directory.
    Path(PathBuf),
    /// A file's content.
    Data {
        /// The file's name, for the model.
        name: String,
        /// The bytes (base64 in JSON).
        #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        data: Vec<u8>,
    },
}

/// The kinds of files that models accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentKind {
    /// An image, by its media type.
    Image(&'static str),
    /// A PDF document.
    Pdf,
    /// Text in UTF-8.
    Text,
}

impl AttachmentKind {
    /// Detects the kind from the content, since names may be wrong. Returns `None` if no model accepts it.
    pub fn of(data: &[u8]) -> Option<Self> {
        match data {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Image("image/png")),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Image("image/jpeg")),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Image("image/gif")),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Image("image/webp")),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(Self::Pdf),
            _ if !data.contains(&0) && std::str::from_utf8(data).is_ok() => Some(Self::Text),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Attachment {
    /// Omits the content.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => formatter.debug_tuple("Path").field(path).finish(),
            Self::Data { name, data } => formatter
                .debug_struct("Data")
                .field("name", name)
                .field("data", &format_args!("{} bytes", data.len()))
                .finish(),
        }
    }
}

fn to_base64<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(data))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(|error| serde::de::Error::custom(format!("data is not base64: {error}")))
}
