//! The settings of a session: its mode, its model and its reasoning effort. Agents offer them as lists (`modes`, `models`), or as
//! options of the session, by category.

use serde_json::{Value, json};

use super::wire::{Choice, ConfigOption, Opened};
use teamster_types::request::PermissionMode;

/// The permission modes of known agents: Gemini CLI 0.61.0, claude-agent-acp 0.101.0, codex-acp 2.6.0 and OpenCode 1.18.33.
const MODES: &[(&str, PermissionMode)] = &[
    ("plan", PermissionMode::ReadOnly),
    ("read-only", PermissionMode::ReadOnly),
    ("default", PermissionMode::Ask),
    ("ask", PermissionMode::Ask),
    ("manual", PermissionMode::Ask),
    ("acceptEdits", PermissionMode::Edit),
    ("autoEdit", PermissionMode::Edit),
    ("auto", PermissionMode::Full),
    ("bypassPermissions", PermissionMode::Full),
    ("full-access", PermissionMode::Full),
    ("yolo", PermissionMode::Full),
];

/// In this mode the agent itself decides each call. It may permit any call, and deny one that mode `full` permits. It is the first
/// mode of claude-agent-acp 0.101.0, which decides by model calls. It is used only if there is no other mode.
const AGENT_DECIDES: &str = "auto";

/// The method and the parameters of a call that changes a setting, without the session id.
pub(super) type Setting = (&'static str, Value);

/// The settings that the agent offers.
#[derive(Debug, Default)]
pub(super) struct Settings {
    mode: Option<Selector>,
    model: Option<Selector>,
    effort: Option<Selector>,
    /// `models` is not a complete list: Gemini CLI accepts any name.
    model_by_name: bool,
}

/// A setting with several values.
#[derive(Debug)]
struct Selector {
    /// The id of the session option, if the setting is an option.
    option: Option<String>,
    current: Option<String>,
    values: Vec<String>,
}

impl Settings {
    pub(super) fn new(opened: Opened) -> Self {
        let mut settings = Self::default();
        settings.options(opened.config_options);
        if let Some(modes) = opened.modes {
            let values = modes.available_modes.into_iter().map(|mode| mode.id).collect();
            settings.mode = Some(Selector { option: None, current: Some(modes.current_mode_id), values });
        }
        if let Some(models) = opened.models {
            settings.model_by_name = true;
            settings.model = Some(Selector { option: None, current: models.current_model_id, values: Vec::new() });
        }
        settings
    }

    /// Reads the current options of the session.
    pub(super) fn options(&mut self, options: Vec<ConfigOption>) {
        for option in options {
            let selector = match option.category.as_deref().unwrap_or(&option.id) {
                "mode" => &mut self.mode,
                "model" => &mut self.model,
                "thought_level" => &mut self.effort,
                _ => continue,
            };
            if selector.as_ref().is_some_and(|known| known.option.is_none()) {
                continue;
            }
            let values = values(&option.options);
            *selector = Some(Selector { option: Some(option.id), current: option.current_value, values });
        }
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_ref()?.current.as_deref()
    }

    /// Returns the call that sets the model, or why it cannot be set.
    pub(super) fn set_model(&mut self, model: &str) -> Result<Setting, String> {
        let by_name = self.model_by_name;
        let selector = self.model.as_mut().ok_or("the agent does not support selecting a model")?;
        if !by_name && !selector.values.iter().any(|value| value == model) {
            return Err(format!("the agent has no model {model:?}; it has: {}", selector.values.join(", ")));
        }
        Ok(selector.set(model, ("session/set_model", "modelId")))
    }

    /// Returns the call that sets the reasoning effort, or why it cannot be set.
    pub(super) fn set_effort(&mut self, effort: &str) -> Result<Setting, String> {
        let selector = self.effort.as_mut().ok_or("the agent does not support selecting the effort")?;
        if !selector.values.iter().any(|value| value == effort) {
            return Err(format!("the agent has no effort {effort:?}; it has: {}", selector.values.join(", ")));
        }
        Ok(selector.set(effort, ("session/set_config_option", "value")))
    }

    /// Returns the call that selects a mode which permits no more than the requested mode. A stricter mode is suitable, because its
    /// permission requests are answered by the requested mode. An unknown mode is assumed to request permission.
    pub(super) fn set_mode(&mut self, wanted: PermissionMode) -> Result<Option<Setting>, String> {
        let suitable: &[PermissionMode] = match wanted {
            PermissionMode::ReadOnly => &[PermissionMode::ReadOnly],
            PermissionMode::Ask => &[PermissionMode::Ask],
            PermissionMode::Edit => &[PermissionMode::Ask, PermissionMode::Edit],
            PermissionMode::Full => &[PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full],
        };
        let current = self.mode.as_ref().and_then(|mode| mode.current.clone());
        let now = current.as_deref().and_then(allows);
        match now {
            Some(now) if suitable.contains(&now) && current.as_deref() != Some(AGENT_DECIDES) => return Ok(None),
            None if wanted != PermissionMode::ReadOnly => return Ok(None),
            _ => {}
        }
        let Some(mode) = &mut self.mode else {
            return Err("the agent has no modes, so it has no read-only mode; use another permission mode".to_owned());
        };
        let is_of = |id: &&String, class: PermissionMode| *id != AGENT_DECIDES && allows(id) == Some(class);
        let found = suitable.iter().find_map(|class| mode.values.iter().find(|id| is_of(id, *class)).cloned());
        match found {
            Some(id) => Ok(Some(mode.set(&id, ("session/set_mode", "modeId")))),
            // A read-only mode is suitable for every other mode.
            None if now.is_some_and(|now| now == PermissionMode::ReadOnly || suitable.contains(&now)) => Ok(None),
            None => {
                let current = current.unwrap_or_default();
                let modes = mode.values.join(", ");
                Err(format!(
                    "the agent is in mode {current:?}, and each of its modes permits more than requested: {modes}"
                ))
            }
        }
    }

    /// Stores a mode that the agent selected. Returns whether it permits more than the requested mode.
    pub(super) fn note_mode(&mut self, id: &str, wanted: PermissionMode) -> bool {
        if let Some(mode) = &mut self.mode {
            mode.current = Some(id.to_owned());
        }
        let rank = |mode| match mode {
            PermissionMode::ReadOnly => 0,
            PermissionMode::Ask => 1,
            PermissionMode::Edit => 2,
            PermissionMode::Full => 3,
        };
        allows(id).is_some_and(|now| rank(now) > rank(wanted))
    }
}

impl Selector {
    fn set(&mut self, value: &str, list: (&'static str, &str)) -> Setting {
        self.current = Some(value.to_owned());
        match &self.option {
            Some(option) => ("session/set_config_option", json!({"configId": option, "value": value})),
            None => (list.0, json!({(list.1): value})),
        }
    }
}

fn allows(id: &str) -> Option<PermissionMode> {
    MODES.iter().find(|(known, _)| *known == id).map(|(_, mode)| *mode)
}

fn values(choices: &[Choice]) -> Vec<String> {
    let inner = choices.iter().flat_map(|choice| &choice.options);
    choices.iter().chain(inner).filter_map(|choice| choice.value.clone()).collect()
}
