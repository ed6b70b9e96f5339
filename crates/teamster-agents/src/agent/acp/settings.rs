//! What a session can be set to: its mode, its model, how hard it thinks. Agents offer these as lists of their own
//! (`modes`, `models`), or as options of a session, by category.

use serde_json::{Value, json};

use super::wire::{Choice, ConfigOption, Opened};
use teamster_types::request::PermissionMode;

/// What the modes of agents allow, as far as they are known: Gemini CLI 0.61.0, claude-agent-acp 0.101.0, codex-acp 2.6.0,
/// OpenCode 1.18.33.
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

/// In this mode the agent judges by itself: it may allow anything, and also deny what is allowed where everything is. (So
/// claude-agent-acp 0.101.0, whose first mode it is, by calls of the model.) It will do where there is no other.
const OWN_JUDGE: &str = "auto";

/// A call, and its parameters beside the session.
pub(super) type Setting = (&'static str, Value);

/// What the agent offers.
#[derive(Debug, Default)]
pub(super) struct Settings {
    mode: Option<Selector>,
    model: Option<Selector>,
    effort: Option<Selector>,
    /// `models` is no list of all there are: Gemini CLI takes any name.
    model_by_name: bool,
}

/// Something that can be set to one of several values.
#[derive(Debug)]
struct Selector {
    /// The option of the session, where it is one.
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

    /// Takes options of the session, as they are now.
    pub(super) fn options(&mut self, options: Vec<ConfigOption>) {
        for option in options {
            let place = match option.category.as_deref().unwrap_or(&option.id) {
                "mode" => &mut self.mode,
                "model" => &mut self.model,
                "thought_level" => &mut self.effort,
                _ => continue,
            };
            if place.as_ref().is_some_and(|known| known.option.is_none()) {
                continue;
            }
            let values = values(&option.options);
            *place = Some(Selector { option: Some(option.id), current: option.current_value, values });
        }
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_ref()?.current.as_deref()
    }

    /// Sets the model.
    pub(super) fn set_model(&mut self, model: &str) -> Result<Setting, String> {
        let by_name = self.model_by_name;
        let selector = self.model.as_mut().ok_or("the agent offers no choice of models")?;
        if !by_name && !selector.values.iter().any(|value| value == model) {
            return Err(format!("the agent has no model {model:?}; it has: {}", selector.values.join(", ")));
        }
        Ok(selector.set(model, ("session/set_model", "modelId")))
    }

    /// Sets how hard the model thinks.
    pub(super) fn set_effort(&mut self, effort: &str) -> Result<Setting, String> {
        let selector = self.effort.as_mut().ok_or("the agent offers no choice of how hard its model thinks")?;
        if !selector.values.iter().any(|value| value == effort) {
            return Err(format!("the agent cannot think {effort:?}; it can: {}", selector.values.join(", ")));
        }
        Ok(selector.set(effort, ("session/set_config_option", "value")))
    }

    /// Sets the mode to one that allows no more than is asked for. What such a mode asks its user is decided by us, so a
    /// stricter one will do; of a mode that nobody knows we take it that it asks.
    pub(super) fn set_mode(&mut self, wanted: PermissionMode) -> Result<Option<Setting>, String> {
        let will_do: &[PermissionMode] = match wanted {
            PermissionMode::ReadOnly => &[PermissionMode::ReadOnly],
            PermissionMode::Ask => &[PermissionMode::Ask],
            PermissionMode::Edit => &[PermissionMode::Ask, PermissionMode::Edit],
            PermissionMode::Full => &[PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full],
        };
        let current = self.mode.as_ref().and_then(|mode| mode.current.clone());
        let now = current.as_deref().and_then(allows);
        match now {
            Some(now) if will_do.contains(&now) && current.as_deref() != Some(OWN_JUDGE) => return Ok(None),
            None if wanted != PermissionMode::ReadOnly => return Ok(None),
            _ => {}
        }
        let Some(mode) = &mut self.mode else {
            return Err("the agent has no modes, so none that only reads; take another permission mode".to_owned());
        };
        let is_of = |id: &&String, class: PermissionMode| *id != OWN_JUDGE && allows(id) == Some(class);
        let found = will_do.iter().find_map(|class| mode.values.iter().find(|id| is_of(id, *class)).cloned());
        match found {
            Some(id) => Ok(Some(mode.set(&id, ("session/set_mode", "modeId")))),
            // A mode that only reads will do for anything else.
            None if now.is_some_and(|now| now == PermissionMode::ReadOnly || will_do.contains(&now)) => Ok(None),
            None => {
                let named = current.unwrap_or_default();
                let modes = mode.values.join(", ");
                Err(format!(
                    "the agent is in mode {named:?} and has none that allows no more than is asked for: {modes}"
                ))
            }
        }
    }

    /// Notes that the agent is in another mode. Tells whether that allows more than is asked for.
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
