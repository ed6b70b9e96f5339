//! The provider over HTTP, called by a plain client: its replies, its faults and its records.

mod client;
mod faults;
mod gemini;
mod openai_chat;
mod openai_responses;
mod replies;
mod requests;
