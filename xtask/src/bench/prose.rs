//! The text of `docs/performance.md` that does not change with the results.

pub(crate) const HEAD: &str = "\
# Performance

Read this page to see what Teamster costs beside the libraries and commands that you would otherwise use, and
how to measure it on your machine. `cargo xtask bench compare` writes this page.

## How it is measured

All subjects run the same fake CLI (`benches/examples/fake_cli`). It writes the lines of the real CLIs, which are made
before they are written. One of eight deltas ends with a line break, which JSON writes as an escape. The subjects run in turn, each in a process of its own, and the whole is repeated. A table
shows the median, and the smallest and the largest value in parentheses. Compare the ratios: absolute
numbers depend on the machine. A command's numbers include the start of its process.

Two floors are programs in Rust without a library. *Lines only* finds the ends of lines in a large buffer. *Typed parsing*
also parses each line into borrowed types, on one thread.

```sh
cargo xtask bench compare                      # everything; installs the peers first
cargo xtask bench compare --quick              # two rounds
cargo xtask bench compare --only burst-claude  # one row; the others keep their last results
cargo xtask bench compare --page-only          # writes this page from the last results
cargo xtask bench start                        # the steps of a start and of an end
cargo xtask bench growth                       # what ten times the work costs
cargo xtask bench count                        # instructions, against a baseline (needs valgrind)
cargo xtask latency                            # a warm turn against a new process, with the real CLIs
```
";

pub(crate) const PROFILE: &str = "\
## Where the time goes

These are profiles of the burst of Claude Code with 2,000,000 deltas (`perf record`), as shares of the samples. The library
ran on one thread (the program `subject`).

| part | floor: typed parsing | library |
| --- | --: | --: |
| parsing: `serde_json` | 65 % | 16 % |
| comparison with the delta before | – | 5 % |
| the system: pipes, their memory, `epoll_wait` | 13 % | 22 % |
| ends of lines, UTF-8 | 7 % | 12 % |
| the protocol of Claude Code and the transcript | – | 15 % |
| the driver and the queue | – | 14 % |
| memory of texts (`malloc`, `free`, `memmove`) | 5 % | 11 % |
| other | 9 % | 4 % |

A delta that has the bytes of an earlier one outside of its text is not parsed: the two are compared. Deltas with an escape,
such as one of eight here, are parsed.

The two targets of starts and ends are missed because other programs ran on the machine during these rows. Without them, the
same two programs, seven times in turn (`floor raw start`, `subject current start`), gave 1.06 ms for the first event
and 0.97 ms for `done`.
";

pub(crate) const WARM: &str = "\
## A warm turn against a new process

`cargo xtask latency` measures this with the real CLIs and a local model provider.
";

pub(crate) const START: &str = "\
## The steps of a start and of an end

`cargo xtask bench start` measures the library on one thread. The driver logs its steps, and the program `subject` notes their
times. The tables show medians: of 40 later runs in a process, and of the first run in each process. Steps that do not wait for
each other overlap.

The only process that a start needs besides the CLI is a keeper, which the supervisor forks; files are written meanwhile. The
supervisor starts with the first run, or ahead of it by `Runtime::warm_up`. The first run in a process is also slower because
its code and its threads are used for the first time.
";

pub(crate) const GROWTH: &str = "\
## Growth

`cargo xtask bench growth` measures what ten times the work costs. In the plots, a linear cost rises as fast as the work.
";
