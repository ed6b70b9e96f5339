//! The settings of a session: its mode, its model and its reasoning effort. Agents offer them as lists (`modes`, `models`), or as
//! options of the session, by category.

use serde_json::{Value, json};

use super::modes::{self, ModeClass};
use super::wire::{Choice, ConfigOption, Opened};
use teamster_types::request::PermissionMode;

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
        // The schema no longer has `models` and `session/set_model`. codex-acp 2.6.0 and pi-acp 0.0.34 reject the ids of their option
        // there.
        if let Some(models) = opened.models.filter(|_| settings.model.is_none()) {
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

    /// Returns the call that selects a mode which permits no more than the requested mode, if the agent is in another one. A mode
    /// that is not known may permit anything.
    pub(super) fn set_mode(&mut self, wanted: PermissionMode) -> Result<Option<Setting>, String> {
        let Some(mode) = &mut self.mode else {
            return match wanted {
                PermissionMode::ReadOnly => {
                    Err("the agent has no modes, so it has no read-only mode; use another permission mode".to_owned())
                }
                _ => Ok(None),
            };
        };
        let current = mode.current.clone().unwrap_or_default();
        let now = modes::class_of(&current);
        let suitable = modes::suitable(wanted);
        if now.is_some_and(|now| suitable.contains(&now)) || now.is_none() && wanted == PermissionMode::Full {
            return Ok(None);
        }
        let is_of = |id: &&String, class: ModeClass| modes::class_of(id) == Some(class);
        let found = suitable.iter().find_map(|class| mode.values.iter().find(|id| is_of(id, *class)).cloned());
        match found {
            Some(id) => Ok(Some(mode.set(&id, ("session/set_mode", "modeId")))),
            // A stricter mode, or one in which the agent decides by itself.
            None if now.is_some_and(|now| modes::is_as_strict(now, wanted)) => Ok(None),
            None => {
                let state = if now.is_some() { "permits more" } else { "may permit more, because it is not known" };
                let list = mode.values.join(", ");
                Err(format!(
                    "the agent is in mode {current:?}, which {state} than requested, and it has no known mode that is as \
                     strict: {list}; configure the agent, or use another permission mode"
                ))
            }
        }
    }

    /// Returns whether the agent's sandbox or plan mode prevents changes, so that a call without a permission request is harmless.
    pub(super) fn prevents_changes(&self) -> bool {
        let current = self.mode.as_ref().and_then(|mode| mode.current.as_deref());
        matches!(current.and_then(modes::class_of), Some(ModeClass::Plans | ModeClass::ReadOnly))
    }

    /// Stores a mode that the agent selected. Returns whether it may permit more than the requested mode.
    pub(super) fn note_mode(&mut self, id: &str, wanted: PermissionMode) -> bool {
        let is_new = self.mode.as_mut().is_none_or(|mode| mode.current.replace(id.to_owned()).as_deref() != Some(id));
        match modes::class_of(id) {
            Some(class) => !modes::is_as_strict(class, wanted),
            None => is_new && wanted != PermissionMode::Full,
        }
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

fn values(choices: &[Choice]) -> Vec<String> {
    let inner = choices.iter().flat_map(|choice| &choice.options);
    choices.iter().chain(inner).filter_map(|choice| choice.value.clone()).collect()
}
