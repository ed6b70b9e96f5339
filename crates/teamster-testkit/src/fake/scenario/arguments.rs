//! The arguments with which the fake CLI was started.

/// The arguments of the CLI.
#[derive(Clone, Debug)]
pub(super) struct Arguments(pub(super) Vec<String>);

impl Arguments {
    /// Returns the value of a flag, given as the next argument or after an equals sign.
    pub(super) fn value(&self, flag: &str) -> Option<&str> {
        let mut arguments = self.0.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix(flag) {
                Some("") => return arguments.next(),
                Some(rest) if rest.starts_with('=') => return rest.get(1..),
                _ => {}
            }
        }
        None
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|argument| argument == word)
    }

    /// Returns the first argument that is neither a flag nor the value of one. The parameters are
    /// the flags without a value and those with any number of values; every other flag has one
    /// value.
    pub(super) fn positional(&self, alone: &[&str], many: &[&str]) -> Option<&str> {
        let mut arguments = self.0.iter().map(String::as_str).peekable();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                return arguments.next();
            }
            if argument == "-" || !argument.starts_with('-') {
                return Some(argument);
            }
            let mut take = || arguments.next_if(|next| !next.starts_with('-')).is_some();
            if many.contains(&argument) {
                while take() {}
            } else if !alone.contains(&argument) && !argument.contains('=') {
                take();
            }
        }
        None
    }

    /// Returns the argument after this one.
    pub(super) fn after(&self, word: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == word)?;
        self.0.get(at + 1).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_found_between_flags_and_their_values() {
        let words = |words: &[&str]| Arguments(words.iter().map(|word| (*word).to_owned()).collect());
        for (arguments, prompt) in [
            (&["-p", "hi"][..], Some("hi")),
            (&["--model", "opus", "-p", "hi"], Some("hi")),
            (&["--model=opus", "hi", "there"], Some("hi")),
            (&["--tools", "Bash", "Read", "-p", "hi"], Some("hi")),
            (&["-p", "--", "--help"], Some("--help")),
            (&["-p", "--tools", "Bash", "hi"], None),
            (&["-p", "--model", "opus"], None),
        ] {
            assert_eq!(words(arguments).positional(&["-p"], &["--tools"]), prompt, "{arguments:?}");
        }
    }
}
