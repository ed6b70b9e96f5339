//! What an interaction means: a slash command, a pressed button or a submitted form.

use serde_json::Value;
use teamster_channel::{Author, COMMANDS};

use super::author_of;
use crate::send::{BUTTON, TEXT_BUTTON};
use crate::types::{Interaction, User};

/// The kinds of interactions.
const COMMAND: u8 = 2;
const COMPONENT: u8 = 3;
const FORM: u8 = 5;

/// The first answer, which the service demands within 3 seconds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Ack {
    /// A reply follows, which only the person sees.
    Reply {
        /// Whether the effect of the interaction may be applied again. That of a form may: the inbox decides a prompt once. That of
        /// a command must not.
        repeatable: bool,
    },
    /// Nothing changes for now.
    Update,
    /// A form opens, for the text of the answer to a prompt with this token.
    Form(String),
}

impl Ack {
    /// Returns whether the effect of the interaction may be applied again after a crash.
    pub(crate) const fn is_repeatable(&self) -> bool {
        matches!(self, Self::Update | Self::Reply { repeatable: true })
    }
}

/// Without the token.
impl std::fmt::Debug for Ack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Reply { .. } => "Reply",
            Self::Update => "Update",
            Self::Form(_) => "Form",
        })
    }
}

/// What an interaction means for the gateway.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// A command with its argument.
    Command(&'static str, String),
    /// A decision about the prompt with this token.
    Decides(String),
    /// A text for the prompt with this token.
    Text(String, String),
    /// A form was opened: its text follows.
    Opened,
    /// A button or a command of another origin.
    Unknown,
}

/// Returns the first answer to an interaction. `None`: the service expects none that this channel has.
pub(crate) fn ack(interaction: &Interaction) -> Option<Ack> {
    match interaction.r#type {
        COMMAND => Some(Ack::Reply { repeatable: false }),
        FORM => Some(Ack::Reply { repeatable: true }),
        COMPONENT => Some(match interaction.data.custom_id.strip_prefix(TEXT_BUTTON) {
            Some(token) => Ack::Form(token.to_owned()),
            None => Ack::Update,
        }),
        _ => None,
    }
}

/// Returns what an interaction means.
pub(crate) fn pressed(interaction: &Interaction) -> Pressed {
    let data = &interaction.data;
    match interaction.r#type {
        COMMAND => {
            let Some(command) = COMMANDS.iter().find(|command| command.name == data.name) else {
                return Pressed::Unknown;
            };
            let argument = data.options.first().map(|option| match &option.value {
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            });
            Pressed::Command(command.name, argument.unwrap_or_default())
        }
        COMPONENT if data.custom_id.starts_with(TEXT_BUTTON) => Pressed::Opened,
        COMPONENT => match data.custom_id.strip_prefix(BUTTON) {
            Some(token) => Pressed::Decides(token.to_owned()),
            None => Pressed::Unknown,
        },
        FORM => match (data.custom_id.strip_prefix(TEXT_BUTTON), form_text(&data.components)) {
            (Some(token), Some(text)) => Pressed::Text(token.to_owned(), text),
            _ => Pressed::Unknown,
        },
        _ => Pressed::Unknown,
    }
}

/// Returns the text of the only field of a form. The field is in a row, or in a label in newer clients.
fn form_text(components: &[Value]) -> Option<String> {
    let fields = components.iter().flat_map(|outer| {
        let in_row = outer.get("components").and_then(Value::as_array).into_iter().flatten();
        in_row.chain(outer.get("component"))
    });
    let mut texts = fields.filter_map(|field| field.get("value")?.as_str());
    texts.next().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns who has sent an interaction.
pub(crate) fn author_of_interaction(interaction: &Interaction) -> Author {
    let member = interaction.member.as_ref();
    let none = User::default();
    let user = member.and_then(|member| member.user.as_ref()).or(interaction.user.as_ref()).unwrap_or(&none);
    author_of(user, member, false)
}
