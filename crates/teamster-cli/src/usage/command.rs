//! `teamster usage`: sums the journal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::reader::{Skipped, read_file};
use super::report;
use super::totals::{By, Totals};
use crate::config;
use crate::exit;
use crate::plan::SystemInputs;
use crate::printable::{Printable, printable};
use crate::render::{write_document, write_error, write_notice};
use crate::runtime::report_usage_error;

/// Sum tokens and cost of earlier runs
///
/// Reads the usage journal, to which run, chat and session append a line for each run or turn. The journal is off unless
/// the setting `usage_journal` names a file. It contains no prompts and no answers.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct UsageArgs {
    /// Sum by: day (default), agent, model or directory
    ///
    /// Days are those of the local time zone. The directory is the agent's working directory.
    #[arg(long, value_name = "KEY", default_value = "day", hide_default_value = true, hide_possible_values = true)]
    by: By,

    /// Count only later runs: 7d, 12h or 2026-11-24
    ///
    /// A duration is counted back from now. A date is the start of that day in the local time zone.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// Print as: text (default) or json
    // The id differs from that of the setting `output`, which has other values.
    #[arg(id = "usage_output", short = 'o', long = "output", value_name = "FORMAT")]
    #[arg(default_value = "text", hide_default_value = true, hide_possible_values = true)]
    output: Format,

    /// Read this journal instead of the configured one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    usage_journal: Option<PathBuf>,

    /// Use this profile of the configuration file
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Use this configuration file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
}

const AFTER: &str = "\
Examples:
  teamster usage
  teamster usage --by model --since 7d
  teamster usage --by directory --output json | jq '.rows[] | [.directory, .costUsd]'";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The time from which runs are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// This long ago.
    Ago(Duration),
    /// The start of this day.
    Day(Date),
}

fn since(text: &str) -> Result<Since, String> {
    let duration = humantime::parse_duration(text).ok().map(Since::Ago);
    // A date with a time is rejected.
    let date = text.parse().ok().filter(|_| text.len() == "2026-11-24".len()).map(Since::Day);
    duration.or(date).ok_or_else(|| "a duration (7d, 12h) or a date (2026-11-24) is needed".to_owned())
}

impl Since {
    fn timestamp(self, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
        match self {
            Self::Ago(duration) => Timestamp::now().checked_sub(SignedDuration::try_from(duration)?),
            Self::Day(date) => zone.to_timestamp(date.at(0, 0, 0, 0)),
        }
    }
}

/// Runs the command and returns its exit code.
pub(crate) fn main(args: &UsageArgs) -> u8 {
    let Some(path) = &args.usage_journal else { return explain(args) };
    let zone = TimeZone::system();
    let since = match args.since.map(|since| since.timestamp(&zone)).transpose() {
        Ok(since) => since,
        Err(error) => return report_usage_error(&printable!("--since: {}", Printable::error(&error)), None),
    };
    let mut totals = Totals::new(args.by, since, zone);
    let skipped = match read_file(path, |entry| totals.add(&entry)) {
        Ok(skipped) => skipped,
        // The first run creates it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Skipped::default(),
        Err(error) => {
            let problem = printable!("cannot read the usage journal {}: {}", path, Printable::error(&error));
            write_error(&mut anstream::stderr(), &problem, None);
            return exit::FAILURE;
        }
    };
    match print(args, since, &totals, skipped, path) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

fn print(args: &UsageArgs, since: Option<Timestamp>, totals: &Totals, skipped: Skipped, path: &Path) -> io::Result<()> {
    let mut stdout = anstream::stdout();
    if args.output == Format::Json {
        let document = report::document(args.by, since, totals, skipped);
        return write_document(&serde_json::to_string_pretty(&document)?, &mut stdout);
    }
    if totals.all.runs == 0 {
        let when = if since.is_some() { " in this time" } else { "" };
        printable!("{} has no runs{}", path, when).write_line(&mut stdout)?;
    } else {
        let home = std::env::var("HOME").ok();
        report::table(args.by, totals, home.as_deref()).write_line(&mut stdout)?;
    }
    report::notes(totals, skipped).iter().for_each(write_notice);
    Ok(())
}

/// Where the journal usually is.
const JOURNAL: &str = "~/.local/state/teamster/usage.ndjson";

/// Prints how to turn the journal on.
fn explain(args: &UsageArgs) -> u8 {
    if args.output == Format::Json {
        let hint = printable!("teamster config set usage_journal '{}', or set TEAMSTER_USAGE_JOURNAL", JOURNAL);
        return report_usage_error(&"the usage journal is off".into(), Some(hint));
    }
    let file = config::user_file(args.config.as_deref(), &SystemInputs);
    let file = file.map_or("~/.config/teamster/config.toml".into(), |file| printable!("{}", &file));
    let option =
        args.config.as_deref().map(|path| printable!(" --config {}", Printable::shell_word(&path.to_string_lossy())));
    let lines: [Printable; 9] = [
        "The usage journal is off, so there is nothing to sum.".into(),
        Printable::default(),
        printable!("To turn it on in {}:", file),
        Printable::default(),
        printable!("  teamster config set usage_journal '{}'{}", JOURNAL, option.unwrap_or_default()),
        Printable::default(),
        "Or set TEAMSTER_USAGE_JOURNAL=FILE. From then on run, chat and session append".into(),
        "one line for each run or turn: time, agent, model, directory, tokens, cost,".into(),
        "outcome and session id. Prompts and answers are never stored.".into(),
    ];
    match Printable::join(lines, "\n").write_line(&mut anstream::stdout()) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_duration_back_from_now_or_a_day() {
        assert_eq!(since("7d"), Ok(Since::Ago(Duration::from_hours(7 * 24))));
        assert_eq!(since("2026-11-24"), Ok(Since::Day(jiff::civil::date(2026, 11, 24))));
        for text in ["", "7", "yesterday", "2026-13-01", "2026-11-24T07:00:00", "20261124"] {
            assert!(since(text).is_err(), "{text}");
        }
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let day = Since::Day(jiff::civil::date(2026, 11, 24)).timestamp(&zone).unwrap();
        assert_eq!(day.to_string(), "2026-11-23T22:00:00Z");
        assert!(Since::Ago(Duration::MAX).timestamp(&zone).is_err());
    }
}
