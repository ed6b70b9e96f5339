//! The gateway's own events as text for people.

use teamster_gateway::event::{GatewayEvent, TurnEnd};

use crate::printable::{Printable, printable};

/// Describes an event. `None` if the events around it show the same.
pub(crate) fn describe(event: GatewayEvent) -> Option<Printable> {
    Some(match event {
        GatewayEvent::TurnQueued { author, text, attachments, .. } => {
            let text = Printable::join(Printable::prose(&text).lines(), "\n> ");
            let files = attachments.iter().map(|name| printable!("\n> [{}]", Printable::exact(name)));
            printable!("> {}: {}{}", Printable::exact(&author), text, Printable::join(files, ""))
        }
        GatewayEvent::TurnEdited { text } => printable!("> changed to: {}", Printable::message(&text)),
        GatewayEvent::TurnRetrying { attempt, delay_ms, code } => {
            printable!(
                "[attempt {} failed ({}); the next one starts in {} s]",
                attempt,
                Printable::exact(&code),
                delay_ms.div_ceil(1000)
            )
        }
        GatewayEvent::TurnInterrupted { .. } => "[the gateway was stopped while the agent worked]".into(),
        GatewayEvent::ConversationRestarted { by } => printable!("[started anew by {}]", Printable::exact(&by)),
        GatewayEvent::MessageSent { channel, text, .. } => {
            printable!(
                "[the agent has sent a message to {}: {}]",
                Printable::exact(&channel),
                Printable::message(&text)
            )
        }
        GatewayEvent::TurnPaused { until } => printable!("[paused until {}]", Printable::exact(&until)),
        GatewayEvent::TurnResumed => "[the pause has ended]".into(),
        GatewayEvent::TurnFinished { state: TurnEnd::Done, .. } => return None,
        GatewayEvent::TurnFinished { state: TurnEnd::Aborted, .. } => "[aborted]".into(),
        GatewayEvent::TurnFinished { error_code, error, .. } => {
            let reason = error.or(error_code).unwrap_or_else(|| "without a reason".to_owned());
            printable!("[failed: {}]", Printable::message(&reason))
        }
        GatewayEvent::PermissionAnswered { decision, by, message, .. } => {
            printable!("[permission: {}]", answered(&decision, by.as_deref(), message.as_deref()))
        }
        GatewayEvent::SessionReset { reason } => printable!("[new agent session: {}]", Printable::message(&reason)),
        GatewayEvent::DeliveryFailed { reason, .. } => printable!("[delivery failed: {}]", Printable::message(&reason)),
        GatewayEvent::ScheduleSkipped { at, .. } => printable!("[schedule skipped: {}]", Printable::exact(&at)),
        GatewayEvent::HookFailed { hook, reason } => {
            printable!("[the hook {} failed: {}]", Printable::exact(&hook), Printable::message(&reason))
        }
        _ => return None,
    })
}

/// Returns how a permission request was closed.
pub(super) fn answered(decision: &str, by: Option<&str>, message: Option<&str>) -> Printable {
    let outcome = match decision {
        "allow" => "allowed".into(),
        "allow_always" => "allowed for the rest of the session".into(),
        "deny" => "denied".into(),
        "timed_out" => "not answered in time".into(),
        "turn_ended" => "closed, because its turn has ended".into(),
        "worker_lost" => "closed, because the agent has died".into(),
        other => Printable::exact(other),
    };
    let by = by.map_or_else(Printable::default, |by| printable!(" by {}", Printable::exact(by)));
    let message = message.map_or_else(Printable::default, |text| printable!(": {}", Printable::message(text)));
    printable!("{}{}{}", outcome, by, message)
}
