//! The real Gemini CLI 0.61.0 under Teamster, against a provider that plays a scenario. Each name is a promise.

mod text;

use teamster::RunRequest;
use teamster_conformance::Lab;

/// A request that runs the lab's CLI with a model of its own: `auto` would ask another one first.
fn request(lab: &Lab, prompt: impl Into<String>) -> RunRequest {
    let mut request = lab.request(prompt);
    request.model = Some("gemini-2.5-flash".to_owned());
    request
}
