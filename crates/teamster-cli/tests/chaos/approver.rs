//! The operator, who answers permission requests by HTTP.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;

use crate::client::Client;
use crate::plan::one_in;
use crate::webhook::Approvals;

/// The interval in which requests are listed.
const INTERVAL: Duration = Duration::from_millis(50);

impl Client {
    /// Answers permission requests, some with yes and some with no, until the task is aborted. Most requests of chats are left
    /// to their authors.
    pub(crate) async fn answer_requests(self, approvals: Approvals) {
        loop {
            for request in self.list("/v1/permission-requests?state=open").await {
                let id = request["id"].as_str().expect("an id");
                let approvers = request["request"]["approvers"].to_string();
                if approvers.contains(crate::webhook::CHANNEL) && !one_in(20) {
                    continue;
                }
                let decision = if one_in(4) { "deny" } else { "allow" };
                if decision == "allow" {
                    approvals.add(id);
                }
                let path = format!("/v1/permission-requests/{id}/answer");
                let reply = self.post(&path, &json!({"decision": decision})).await;
                assert!(matches!(reply.status, StatusCode::OK | StatusCode::CONFLICT), "{reply:?}");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
