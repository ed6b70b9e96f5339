//! `teamster man`: the manual pages, which are made from the definition of the command line.
//!
//! On a terminal the program `man` shows a page. A pipe gets plain text.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::exit;
use crate::printable::{Printable, printable};
use crate::runtime::{report_failure, report_usage_error};

/// Prints a page. Returns the exit code. `definition` is that of all commands.
pub(crate) fn main(name: Option<&str>, definition: clap::Command) -> u8 {
    let wanted = name.map_or_else(|| "teamster".to_owned(), |name| format!("teamster-{name}"));
    let pages = match pages(definition) {
        Ok(pages) => pages,
        Err(error) => return report_failure(&error),
    };
    let Some((_, page)) = pages.iter().find(|(name, _)| *name == wanted) else {
        let names = pages.iter().filter_map(|(name, _)| name.strip_prefix("teamster-")).map(Printable::exact);
        let problem = printable!("there is no command {}", Printable::exact(name.unwrap_or_default()));
        return report_usage_error(&problem, Some(printable!("use one of {}", Printable::join(names, ", "))));
    };
    if io::stdout().is_terminal() && shown_by_man(&wanted, page).is_ok_and(|status| status.success()) {
        return exit::SUCCESS;
    }
    let text = plain(&String::from_utf8_lossy(page));
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

/// Returns the pages with their names: `teamster`, and `teamster-NAME` for each command, as git's.
///
/// # Errors
/// A page cannot be written.
pub(crate) fn pages(definition: clap::Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut top = definition.disable_help_subcommand(true);
    top.build();
    let mut commands = vec![top.clone()];
    commands.extend(top.get_subcommands().cloned());
    let page = |command: clap::Command| {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let mut text = Vec::new();
        clap_mangen::Man::new(with_descriptions(command).name(name.clone())).render(&mut text)?;
        Ok((name, text))
    };
    commands.into_iter().map(page).collect()
}

/// Gives each option that `-h` hides a long description: a man page lacks the short one.
fn with_descriptions(page: clap::Command) -> clap::Command {
    page.mut_args(|arg| match (arg.get_long_help(), arg.get_help().cloned()) {
        (None, Some(help)) if arg.is_hide_short_help_set() => arg.long_help(help),
        _ => arg,
    })
}

/// Shows a page with `man`, which reads files only.
fn shown_by_man(name: &str, page: &[u8]) -> io::Result<ExitStatus> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(format!("{name}.1"));
    std::fs::write(&file, page)?;
    // With a slash, the argument is a file.
    Command::new("man").arg(Path::new(&file)).status()
}

/// Formats a page as plain text. It reads the part of roff that the pages use.
fn plain(page: &str) -> String {
    let mut text = String::new();
    let (mut indent, mut is_tag) = (0_usize, false);
    let mut paragraph: Vec<String> = Vec::new();
    let lines = page.lines();
    let flush = |text: &mut String, paragraph: &mut Vec<String>, indent: usize| {
        if !paragraph.is_empty() {
            let margin = " ".repeat(indent + 7);
            let options = textwrap::Options::new(79).initial_indent(&margin).subsequent_indent(&margin);
            text.push_str(&textwrap::fill(&paragraph.join(" "), options));
            text.push('\n');
            paragraph.clear();
        }
    };
    for line in lines {
        let (request, argument) = match line.strip_prefix('.') {
            Some(request) => request.split_once(' ').unwrap_or((request, "")),
            None => ("", ""),
        };
        match request {
            "" if is_tag => {
                text.extend([" ".repeat(indent + 7), unescaped(line), "\n".to_owned()]);
                is_tag = false;
                indent += 7;
            }
            "" if line.trim().is_empty() => flush(&mut text, &mut paragraph, indent),
            "" => paragraph.push(unescaped(line)),
            "SH" | "SS" => {
                flush(&mut text, &mut paragraph, indent);
                indent = 0;
                text.extend(["\n", unescaped(argument).trim_matches('"'), "\n"]);
            }
            "TP" => {
                flush(&mut text, &mut paragraph, indent);
                text.push('\n');
                (indent, is_tag) = (0, true);
            }
            "RS" => indent += 7,
            "RE" => indent = indent.saturating_sub(7),
            "br" | "PP" | "sp" => flush(&mut text, &mut paragraph, indent),
            _ => {}
        }
    }
    flush(&mut text, &mut paragraph, indent);
    text.trim_start().to_owned()
}

/// Returns a line without fonts and escapes.
fn unescaped(line: &str) -> String {
    let mut text = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('f') => _ = characters.next(),
            Some('&') | None => {}
            // A named string: `\*(Aq` is an apostrophe.
            Some('*') => match characters.next() {
                Some('(') => text.push_str(if characters.by_ref().take(2).eq("Aq".chars()) { "'" } else { "\"" }),
                Some('[') => _ = characters.by_ref().take_while(|c| *c != ']').count(),
                _ => {}
            },
            Some('(') => {
                let name: String = characters.by_ref().take(2).collect();
                text.push_str(if name == "aq" { "'" } else { "\"" });
            }
            Some('e') => text.push('\\'),
            Some(other) => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_plain_text_with_all_options_of_its_command() {
        let definition = crate::args::command();
        for (name, page) in pages(definition.clone()).unwrap() {
            let text = plain(&String::from_utf8(page).unwrap());
            assert!(text.starts_with("NAME\n"), "{text}");
            let is_markup = |line: &&str| line.starts_with('.') || line.contains("\\f") || line.contains("\\-");
            assert_eq!(text.lines().find(is_markup), None, "{name}");
            assert!(text.contains("see a summary with '-h')") || !text.contains("see a summary"), "{name}: {text}");
            assert!(text.lines().all(|line| line.chars().count() < 130), "{name}: {text}");
            let command = name.strip_prefix("teamster-").and_then(|name| definition.find_subcommand(name));
            let options = command.unwrap_or(&definition).get_arguments().filter(|arg| !arg.is_hide_set());
            for long in options.filter_map(clap::Arg::get_long) {
                assert!(text.contains(&format!("--{long}")), "{name}: --{long}\n{text}");
            }
        }
    }
}
