//! Suggestions for a misspelled command.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The most letters that differ between a command and its misspelling. Two letters in the wrong order count once.
const MAX_DISTANCE: usize = 2;

/// Adds the command that was probably meant to the error of an unknown one. Clap finds none for two letters in the wrong order.
pub(super) fn with_command(mut error: clap::Error, definition: &clap::Command) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let known = definition.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let rated = known.map(|name| (strsim::osa_distance(typed, name), name.to_owned()));
    if let Some((_, name)) = rated.filter(|(distance, _)| *distance <= MAX_DISTANCE).min() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
    }
    error
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_misspelled_command_gets_a_suggestion() {
        let definition = crate::args::command();
        let message = |typed: &str| {
            let error = definition.clone().try_get_matches_from(["teamster", typed]).unwrap_err();
            super::with_command(error, &definition).to_string()
        };
        assert!(message("rnu").contains("a similar subcommand exists: 'run'"), "{}", message("rnu"));
        assert!(message("doctr").contains("'doctor'"), "{}", message("doctr"));
        assert!(!message("qqqqqq").contains("similar"), "{}", message("qqqqqq"));
    }
}
