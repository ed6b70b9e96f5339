//! The OpenAI face.
