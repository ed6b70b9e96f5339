//! The provider over HTTP, asked by a plain client: what it plays, how it fails, what it records.

mod client;
mod faults;
mod openai_responses;
mod gemini;
mod openai_chat;
mod playing;
mod record;
