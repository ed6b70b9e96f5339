//! The settings of a conversation that a caller may select.

use serde::{Deserialize, Deserializer, Serialize};
use teamster::request::PermissionMode;
use utoipa::ToSchema;

use super::extract::Authenticated;
use super::problem::{Problem, ProblemCode, Result};
use super::wire::check_length;
use crate::config::{ConversationSettings, Origin, resolve};
use crate::engine::{Gateway, MAX_INSTRUCTIONS, MAX_METADATA, MAX_NAME};

/// The channel of conversations that callers of the API create.
pub(super) const CHANNEL: &str = "http";

/// The largest number of characters of names and titles.
pub(super) const NAME_LENGTH: usize = MAX_NAME;

/// What an agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Permission {
    /// The agent may only read.
    ReadOnly,
    /// Changes need permission.
    Ask,
    /// File edits are allowed. Other changes need permission.
    Edit,
    /// Everything is allowed.
    Full,
}

impl From<PermissionMode> for Permission {
    fn from(mode: PermissionMode) -> Self {
        match mode {
            PermissionMode::ReadOnly => Self::ReadOnly,
            PermissionMode::Ask => Self::Ask,
            PermissionMode::Edit => Self::Edit,
            PermissionMode::Full => Self::Full,
        }
    }
}

impl From<Permission> for PermissionMode {
    fn from(permission: Permission) -> Self {
        match permission {
            Permission::ReadOnly => Self::ReadOnly,
            Permission::Ask => Self::Ask,
            Permission::Edit => Self::Edit,
            Permission::Full => Self::Full,
        }
    }
}

/// Checks that the caller may select a permission: at most that of the configuration, unless it is an admin.
pub(super) fn check_permission(gateway: &Gateway, caller: &Authenticated, wanted: Permission) -> Result<()> {
    let origin = Origin { channel: CHANNEL, chat: "", author: &caller.identity.owner };
    let configured = resolve(gateway.config(), None, &ConversationSettings::default(), origin);
    let highest = configured.map_or(Permission::Ask, |settings| settings.permission.into());
    if wanted <= highest || caller.is_admin() {
        return Ok(());
    }
    let detail = "a token without the scope admin cannot select a higher permission than that of the configuration";
    Err(Problem::new(ProblemCode::Forbidden, detail))
}

/// Checks the sizes of settings.
pub(super) fn check_sizes(settings: &ConversationSettings) -> Result<()> {
    let ConversationSettings { model, instructions, metadata, .. } = settings;
    check_length("model", model.as_deref().unwrap_or_default(), NAME_LENGTH)?;
    check_length("instructions", instructions.as_deref().unwrap_or_default(), MAX_INSTRUCTIONS)?;
    let bytes = serde_json::to_vec(metadata).map_err(|error| Problem::internal(&error))?.len();
    if bytes > MAX_METADATA {
        return Err(Problem::invalid("metadata", format_args!("must have at most {MAX_METADATA} bytes of JSON")));
    }
    Ok(())
}

/// A change of a value: an absent field keeps it, `null` removes it.
#[derive(Clone, Debug, Default)]
pub(super) enum Change<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is removed.
    Remove,
    /// It is this one now.
    Set(T),
}

impl<T> Change<T> {
    /// Returns the new value, if there is one.
    pub(super) const fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Remove => None,
        }
    }

    /// Changes a value.
    pub(super) fn apply<U>(&self, value: &mut Option<U>, convert: impl FnOnce(&T) -> U) {
        match self {
            Self::Keep => {}
            Self::Remove => *value = None,
            Self::Set(new) => *value = Some(convert(new)),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Remove, Self::Set))
    }
}
