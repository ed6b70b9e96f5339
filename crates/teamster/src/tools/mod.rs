//! Tools written in Rust for any agent: an MCP server inside this program.
//!
//! ```no_run
//! use teamster::tools::{JsonSchema, Tool, ToolServer, schemars};
//! use teamster::{RunRequest, Runtime};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let add = Tool::new("add", "Adds two numbers", |Add { a, b }| async move { Ok::<_, String>(format!("{}", a + b)) });
//! let tools = ToolServer::new("calc").with(add).serve().await?;
//! let mut request = RunRequest::new("What is 19 + 23? Use the tool.");
//! tools.offer(&mut request);
//! let result = Runtime::new().run("claude", request)?.result().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The server listens on the loopback address, on a port of its own. It answers only requests with its token. The token is new
//! for each [`ServedTools`], and reaches the agent like any secret of an MCP server, never in argv.
//!
//! Invariants: nothing of the server outlives its [`ServedTools`], including running calls. A tool that panics is a failed
//! call.

mod calls;
mod context;
mod error;
mod handler;
mod reply;
mod schema;
mod serve;

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use context::CallContext;
pub use error::ServeError;
pub use reply::Reply;
pub use schemars::{self, JsonSchema};
pub use serve::ServedTools;

/// The maximum length of a tool's name. Vendors allow 64 characters for it together with the agent's prefix.
const MAX_NAME: usize = 48;

type Answer = Pin<Box<dyn Future<Output = Result<Reply, String>> + Send>>;

/// A tool: its name, its description, its input and its function.
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    input: Result<Arc<JsonObject>, String>,
    is_read_only: bool,
    call: Arc<dyn Fn(Value, CallContext) -> Answer + Send + Sync>,
}

impl Tool {
    /// Creates a tool with this name (letters, digits, `_` and `-`). The model reads the description to decide when to use it.
    ///
    /// The model gets the JSON schema of `I`, which must be a struct; an empty one for a tool without input. Arguments that do
    /// not match are rejected before the tool is called, and the model reads the reason. An error is a failed call: the model
    /// reads its text.
    ///
    /// Calls may run concurrently. A call is dropped if the agent cancels it or the server ends.
    pub fn new<I, O, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        call: impl Fn(I) -> F + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Into<Reply>,
        E: std::fmt::Display,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        Self::with_context(name, description, move |input, _| call(input))
    }

    /// Creates a tool like [`new`](Self::new) whose function gets the [context](CallContext) of the call: its caller, its
    /// progress, and whether it is cancelled.
    ///
    /// ```
    /// use teamster::tools::{CallContext, JsonSchema, Tool, schemars};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Build { target: String }
    ///
    /// let build = Tool::with_context("build", "Builds a target", |Build { target }, call: CallContext| async move {
    ///     call.progress(1.0, Some(2.0), Some("compiling")).await;
    ///     let user = call.label().unwrap_or("an unknown user");
    ///     Ok::<_, String>(format!("{target} is built for {user}"))
    /// });
    /// # _ = build;
    /// ```
    pub fn with_context<I, O, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        call: impl Fn(I, CallContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Into<Reply>,
        E: std::fmt::Display,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let call = move |input: Value, context: CallContext| -> Answer {
            let input = serde_json::from_value(input).map_err(|error| format!("these arguments do not fit: {error}"));
            let answer = input.map(|input| call(input, context));
            Box::pin(async move { answer?.await.map(O::into).map_err(|error| format!("{error:#}")) })
        };
        Self {
            name: name.into(),
            description: description.into(),
            input: schema_for_input::<I>(),
            is_read_only: false,
            call: Arc::new(call),
        }
    }

    /// Creates a tool whose arguments are known only at run time. `schema` is their JSON schema, which must be the schema of an
    /// object.
    ///
    /// The tool gets the arguments as an object with all members that the schema's `required` names. The rest of the schema is
    /// for the model only: the tool must expect arguments that do not match it.
    ///
    /// ```
    /// use serde_json::json;
    /// use teamster::tools::Tool;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let weather = Tool::with_schema("weather", "Reports the weather", schema, |input, _call| async move {
    ///     Ok::<_, String>(format!("It rains in {}.", input["city"]))
    /// });
    /// # _ = weather;
    /// ```
    pub fn with_schema<O, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        call: impl Fn(Value, CallContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        O: Into<Reply>,
        E: std::fmt::Display,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let input = schema::of_object(schema).map(Arc::new);
        let required = input.as_ref().map(|schema| schema::required(schema)).unwrap_or_default();
        let call = move |input: Value, context: CallContext| -> Answer {
            let missing = required.iter().find(|name| input.get(name).is_none());
            let answer = match missing {
                Some(name) => Err(format!("these arguments do not fit: missing field `{name}`")),
                None => Ok(call(input, context)),
            };
            Box::pin(async move { answer?.await.map(O::into).map_err(|error| format!("{error:#}")) })
        };
        Self { name: name.into(), description: description.into(), input, is_read_only: false, call: Arc::new(call) }
    }

    /// Marks the tool as one that changes nothing. Some agents ask less often before they call such a tool.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Calls the tool. A panic becomes an error.
    async fn call(&self, input: JsonObject, context: CallContext) -> Result<Reply, String> {
        use futures::FutureExt as _;
        let call = async { (self.call)(Value::Object(input), context).await };
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| Err("the tool failed: a bug in it".to_owned()))
    }

    fn check(&self) -> Result<(), ServeError> {
        let wrong = |problem: String| Err(ServeError::Tool { name: self.name.clone(), problem });
        let clean = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if self.name.is_empty() || !clean(&self.name) {
            return wrong("its name must be made of letters, digits, '_' and '-'".to_owned());
        }
        if self.name.len() > MAX_NAME {
            return wrong(format!("its name has more than {MAX_NAME} characters"));
        }
        match &self.input {
            Ok(_) => Ok(()),
            Err(problem) => wrong(format!("what it takes must be a struct, or the schema of an object: {problem}")),
        }
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Tools that are offered together, under one name.
#[derive(Clone, Debug)]
pub struct ToolServer {
    name: String,
    instructions: Option<String>,
    tools: Vec<Tool>,
}

impl ToolServer {
    /// Creates a server with this name. Agents use it to call the tools, and events contain it.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), instructions: None, tools: Vec::new() }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets instructions for the model on how to use the tools together.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }
}
