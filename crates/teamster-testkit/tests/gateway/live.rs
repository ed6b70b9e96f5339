//! A chat shows an answer while it grows, and the answer replaces what was shown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use teamster_channel::{
    Address, Capabilities, Channel, ChannelError, Content, Delivered, Inbox, Operation, Outgoing, SendError,
    SendOutcome,
};
use teamster_gateway::{IncomingMessage, MessageTarget, channels};
use teamster_store::{ChatAddress, MessageMode, TurnState};
use tokio_util::sync::CancellationToken;

use crate::test_gateway::{LIMIT, TestGateway};

/// The first message streams, and waits for a file before the second one.
const GROWING: &str =
    "[[turns]]\nsteps = [{ say = \"First part\" }, { waitForFile = \"GATE\" }, { say = \"The end\" }]\n";

/// A service whose messages can be edited.
#[derive(Default)]
struct EditableChat {
    calls: Mutex<Vec<(Operation, Content)>>,
    typing: Mutex<u32>,
    /// The service refuses edits of a growing answer.
    refuses_progress: bool,
}

impl EditableChat {
    fn calls(&self) -> Vec<(Operation, Content)> {
        self.calls.lock().unwrap().clone()
    }

    async fn wait_for(&self, condition: impl Fn(&[(Operation, Content)]) -> bool) {
        let wait = async {
            while !condition(&self.calls()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(LIMIT, wait).await;
        assert!(in_time.is_ok(), "{:?}", self.calls());
    }
}

#[async_trait]
impl Channel for EditableChat {
    fn name(&self) -> &'static str {
        "editable"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edits: true,
            senders_are_authenticated: true,
            edit_interval: Duration::from_millis(10),
            typing_lasts: Some(Duration::from_secs(10)),
            ..Capabilities::default()
        }
    }

    async fn check(&self) -> Result<(), ChannelError> {
        Ok(())
    }

    async fn receive(&self, _inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        stop.cancelled().await;
        Ok(())
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        self.calls.lock().unwrap().push((outgoing.operation.clone(), outgoing.content.clone()));
        let is_edit_of_progress =
            outgoing.operation != Operation::New && matches!(outgoing.content, Content::Progress { .. });
        if self.refuses_progress && is_edit_of_progress {
            return SendOutcome::NotSent(SendError::Never("edits are not permitted".to_owned()));
        }
        SendOutcome::Sent(Delivered { message_id: Some("message".to_owned()) })
    }

    async fn typing(&self, _address: &Address) {
        *self.typing.lock().unwrap() += 1;
    }
}

/// Sends one message through the channel, and opens the gate when the chat shows the first part.
async fn answer_in(chat: &Arc<EditableChat>, until: impl Fn(&[(Operation, Content)]) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    let scenario = GROWING.replace("GATE", &gate.display().to_string());
    let channel = Arc::clone(chat) as Arc<dyn Channel>;
    let mut test = TestGateway::with_channels(&scenario, vec![channel]).await;
    let mut tasks = channels::start(&test.gateway);
    let address = ChatAddress { channel: "editable".to_owned(), chat: "1".to_owned(), thread: String::new() };
    let message = IncomingMessage {
        target: MessageTarget::Address(address),
        channel_ids: vec!["m1".to_owned()],
        idempotency: None,
        author: "alice".to_owned(),
        text: "hello".to_owned(),
        attachments: Vec::new(),
        mode: MessageMode::Queue,
    };
    let accepted = test.gateway.accept(message).await.unwrap();
    chat.wait_for(until).await;
    std::fs::write(&gate, "").unwrap();
    assert_eq!(test.ended(accepted.turn.turn).await.state, TurnState::Done);
    chat.wait_for(|calls| calls.iter().any(|(_, content)| matches!(content, Content::Answer { .. }))).await;
    test.shutdown().await;
    tasks.shutdown().await;
}

fn shows(calls: &[(Operation, Content)], text: &str) -> bool {
    calls
        .iter()
        .any(|(operation, content)| *operation == Operation::Edit("message".to_owned()) && content.text() == text)
}

#[tokio::test]
async fn an_answer_grows_in_one_message_by_edits_and_the_last_edit_is_the_answer() {
    let chat = Arc::new(EditableChat::default());
    answer_in(&chat, |calls| shows(calls, "First part")).await;
    let calls = chat.calls();
    let new = calls.iter().filter(|(operation, _)| *operation == Operation::New).count();
    assert_eq!(new, 1, "only the progress message is new: {calls:?}");
    assert!(matches!(calls.first(), Some((Operation::New, Content::Progress { .. }))), "{calls:?}");
    let (operation, content) = calls.last().unwrap();
    assert_eq!(*operation, Operation::Edit("message".to_owned()));
    assert!(matches!(content, Content::Answer { text, .. } if text.ends_with("The end")), "{calls:?}");
    assert!(*chat.typing.lock().unwrap() > 0, "the chat shows that the agent works");
}

#[tokio::test]
async fn a_service_that_refuses_edits_of_a_growing_answer_gets_the_answer() {
    let chat = Arc::new(EditableChat { refuses_progress: true, ..EditableChat::default() });
    answer_in(&chat, |calls| shows(calls, "First part")).await;
    let edits = chat.calls().iter().filter(|(_, content)| matches!(content, Content::Progress { .. })).count();
    assert_eq!(edits, 2, "the message and one refused edit");
    assert!(matches!(chat.calls().last().unwrap().1, Content::Answer { .. }));
}
