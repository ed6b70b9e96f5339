//! The provider over HTTP, asked by a plain client: what it plays, how it fails, what it records.

mod client;
mod faults;
mod gemini;
mod openai_chat;
mod openai_responses;
mod playing;
mod record;
