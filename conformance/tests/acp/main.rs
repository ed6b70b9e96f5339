//! Sessions of ACP agents, each promise a test per agent: `PROMISE::AGENT`.
//!
//! Gemini CLI runs as its own agent. OpenCode and claude-agent-acp run as generic ACP agents, of which Teamster knows
//! nothing.

#![expect(clippy::indexing_slicing, reason = "the lints take helpers of tests for library code")]

/// Makes a test of each function for each ACP agent.
macro_rules! acp_tests {
    ($($test:ident),+ $(,)?) => {
        $(
            mod $test {
                #[tokio::test]
                async fn gemini() -> anyhow::Result<()> {
                    super::$test(crate::agent::AcpAgent::Gemini).await
                }

                #[tokio::test]
                async fn opencode() -> anyhow::Result<()> {
                    super::$test(crate::agent::AcpAgent::OpenCode).await
                }

                #[tokio::test]
                async fn claude_agent() -> anyhow::Result<()> {
                    super::$test(crate::agent::AcpAgent::ClaudeAgent).await
                }
            }
        )+
    };
}

mod agent;
mod permissions;
mod sessions;
