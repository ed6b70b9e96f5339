//! Sessions by ACP: Gemini CLI as its own agent, and others as agents of which nothing is known, among them one that
//! none of the four is (claude-agent-acp). Each name is a promise.

mod permissions;
mod sessions;
mod speaker;
