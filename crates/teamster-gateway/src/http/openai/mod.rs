//! The OpenAI-compatible API: `/v1/chat/completions` and `/v1/models`, for clients that only have a base URL and a token.
//!
//! - `model` is an agent, or `agent/model`.
//! - A request carries its whole history. So each request gets a conversation of its own, with the history in its first message.
//!   A request that names a conversation (`metadata.conversation_id`, or the header `X-Teamster-Conversation`) sends only its last
//!   message there: the conversation has its history already.
//! - System messages become instructions of a new conversation. A conversation that exists keeps its own.
//! - The agent uses its own tools. `tools` of a request are not forwarded to it, and it never requests a tool call, so that
//!   `finish_reason` is always `stop`. A request that forces a tool call is refused.
//! - Parameters of sampling (`temperature`, `top_p`, `max_tokens`, `stop`, ...) are ignored: agents select them. What would change
//!   the form of the answer (`n`, `response_format`, `logprobs`, audio) is refused.
//! - A client that disconnects aborts its turn.
//! - Some clients use the same model to generate titles and tags. Each such request starts a turn like any other. The
//!   operator can turn this feature off in the client, select a cheap model for it there, or reject its token's owner
//!   with a rule.
//!
//! | module | contents |
//! |---|---|
//! | `request` | reads and checks a request |
//! | `content` | texts and attachments of messages |
//! | `prompt` | the message for the agent |
//! | `turn` | accepts the message and follows its turn |
//! | `answer` | the text of an answer, even if the agent starts again |
//! | `chunks`, `error` | what a client gets |

mod answer;
mod chunks;
mod content;
mod error;
mod handlers;
mod prompt;
mod request;
#[cfg(test)]
mod tests;
mod turn;

pub(super) use self::handlers::{router, with_errors};
