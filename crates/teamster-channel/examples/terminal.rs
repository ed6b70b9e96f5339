//! A channel for one person: lines of stdin are messages, and deliveries are printed.
//!
//! `docs/channels/own-channel.md` explains it. The gateway calls the channel; here a small inbox takes the gateway's place:
//! `cargo run -p teamster-channel --example terminal`, then type a line.

use std::io::{BufRead as _, Write as _};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde_json::Value;
use teamster_channel::{
    Address, Author, Capabilities, Channel, ChannelError, ChatCommand, CommandReply, Content, Delivered, Edit, Inbox,
    InboxError, Message, Outgoing, PromptAnswer, PromptDecision, Receipt, SendError, SendOutcome, parse_command,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The channel. A real one has the client of its service here.
#[derive(Debug, Default)]
struct Terminal;

impl Terminal {
    fn me() -> (Address, Author) {
        let address = Address { chat: "terminal".to_owned(), thread: String::new() };
        (address, Author { id: "me".to_owned(), name: "Me".to_owned(), is_bot: false })
    }

    /// Hands a line to the gateway. The service must not forget the line before this returns.
    async fn line(inbox: &dyn Inbox, id: String, line: &str) -> Result<(), InboxError> {
        let (address, author) = Self::me();
        if let Some((name, argument)) = parse_command(line) {
            let command = ChatCommand { name: name.to_owned(), argument: argument.to_owned(), author, address };
            return inbox.command(command).await.map(|reply| print(&reply.text));
        }
        if let Some(token) = line.strip_prefix("press ") {
            let answer = PromptAnswer { token: token.trim().to_owned(), message: None, author, address };
            return inbox.answer(answer).await.map(|decision| print(&format!("{decision:?}")));
        }
        let (ids, text) = (vec![id], line.to_owned());
        let message = Message { ids, address, author, text, attachments: Vec::new(), is_addressed: true };
        match inbox.message(message).await? {
            Receipt::Refused(reason) | Receipt::Busy(reason) => print(&reason),
            Receipt::Accepted { .. } | Receipt::Duplicate | Receipt::Ignored => {}
        }
        Ok(())
    }
}

#[async_trait]
impl Channel for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn capabilities(&self) -> Capabilities {
        // Only the operator can type here.
        Capabilities { buttons: true, senders_are_authenticated: true, ..Capabilities::default() }
    }

    async fn check(&self) -> Result<(), ChannelError> {
        Ok(())
    }

    async fn receive(&self, inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        let (sender, mut lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            let lines = std::io::stdin().lock().lines().map_while(Result::ok);
            lines.take_while(|line| sender.blocking_send(line.clone()).is_ok()).for_each(drop);
        });
        for number in 0_u64.. {
            let line = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                line = lines.recv() => line,
            };
            let Some(line) = line else { return Ok(()) };
            // A service has ids of its own, which are the same when it sends a message again.
            let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            if let Err(error) = Self::line(inbox, format!("{}-{number}", started.as_nanos()), &line).await {
                print(&format!("not accepted: {error}"));
            }
        }
        Ok(())
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        let mut text = outgoing.shown_text().into_owned();
        if let Content::Prompt(prompt) = &outgoing.content {
            for button in &prompt.buttons {
                text.extend(["\n  ", &button.label, ": press ", &button.token]);
            }
        }
        match writeln!(std::io::stdout(), "{text}") {
            Ok(()) => SendOutcome::Sent(Delivered::default()),
            Err(error) => SendOutcome::NotSent(SendError::later(error.to_string())),
        }
    }
}

fn print(text: &str) {
    // A closed terminal shows nothing.
    _ = writeln!(std::io::stdout(), "{text}");
}

/// Takes the place of the gateway: it prints what it gets.
#[derive(Debug, Default)]
struct Printer(Mutex<Option<Value>>);

#[async_trait]
impl Inbox for Printer {
    async fn message(&self, message: Message) -> Result<Receipt, InboxError> {
        print(&format!("message {:?}", message.text));
        Ok(Receipt::Accepted { turn: "1".to_owned() })
    }
    async fn edit(&self, _edit: Edit) -> Result<(), InboxError> {
        Ok(())
    }
    async fn answer(&self, _answer: PromptAnswer) -> Result<PromptDecision, InboxError> {
        Ok(PromptDecision::Closed)
    }
    async fn command(&self, command: ChatCommand) -> Result<CommandReply, InboxError> {
        Ok(CommandReply { text: format!("command {}", command.name) })
    }
    async fn state(&self, _key: &str) -> Result<Option<Value>, InboxError> {
        Ok(self.0.lock().ok().and_then(|state| state.clone()))
    }
    async fn set_state(&self, _key: &str, state: Value) -> Result<(), InboxError> {
        self.0.lock().map(|mut stored| *stored = Some(state)).map_err(|error| InboxError(error.to_string()))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ChannelError> {
    Terminal.receive(&Printer::default(), CancellationToken::new()).await
}
