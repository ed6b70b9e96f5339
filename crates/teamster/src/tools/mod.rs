//! Tools written in Rust, which any agent can call: an MCP server inside this program, for the length of a run.
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
//! The server listens on the loopback address, on a port of its own, and answers only who knows its token, which is made
//! anew for each [`ServedTools`] and travels to the agent as any secret of an MCP server does: never in argv.
//!
//! Invariants: nothing of the server outlives its [`ServedTools`], calls that still run included; a tool that panics is a
//! failed call and nothing more.

mod calls;
mod context;
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
pub use reply::Reply;
pub use schemars::{self, JsonSchema};
pub use serve::{ServeError, ServedTools};

/// The longest name of a tool: vendors allow 64 characters for it together with what an agent puts before it.
const MAX_NAME: usize = 48;

type Answer = Pin<Box<dyn Future<Output = Result<Reply, String>> + Send>>;

/// A tool: its name, what it is for, what it takes, and what it does.
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    input: Result<Arc<JsonObject>, String>,
    is_read_only: bool,
    call: Arc<dyn Fn(Value, CallContext) -> Answer + Send + Sync>,
}

impl Tool {
    /// A tool of this name (letters, digits, `_` and `-`). The description tells the model what it is for.
    ///
    /// What it takes is told to the model as the JSON schema of `I`, which has to be a struct: an empty one for a tool that
    /// takes nothing. Arguments that do not fit are refused before the tool is called, and the model reads why. An error is a
    /// failed call: the model reads its text.
    ///
    /// Calls may run side by side. One that the agent gives up, or that runs when the server ends, is dropped.
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

    /// The same for a tool that wants to know more of the call: whose it is, whether it is still wanted, and how to report
    /// progress.
    ///
    /// ```
    /// use teamster::tools::{CallContext, JsonSchema, Tool, schemars};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Build { target: String }
    ///
    /// let build = Tool::with_context("build", "Builds a target", |Build { target }, call: CallContext| async move {
    ///     call.progress(1.0, Some(2.0), Some("compiling")).await;
    ///     let user = call.label().unwrap_or("nobody");
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

    /// A tool whose arguments are known at run time only: `schema` is their JSON schema, which has to be one of an object.
    ///
    /// The tool gets the arguments as an object with all members that the schema's `required` names. Everything else that
    /// the schema says is for the model: the tool has to expect that it does not keep to it.
    ///
    /// ```
    /// use serde_json::json;
    /// use teamster::tools::Tool;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let weather = Tool::with_schema("weather", "Tells the weather", schema, |input, _call| async move {
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

    /// Tells agents that the tool changes nothing: some ask less before they call such a one.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Calls it. A panic is an error like any other.
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
    /// A server of this name, by which agents call its tools, and events tell of them.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), instructions: None, tools: Vec::new() }
    }

    /// One tool more.
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// How to use the tools together, for the model.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Serves the tools on the loopback address until the [`ServedTools`] is dropped. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// When a tool's name or input cannot be offered, two tools have the same name, or no port can be had.
    pub async fn serve(self) -> Result<ServedTools, ServeError> {
        for (number, tool) in self.tools.iter().enumerate() {
            tool.check()?;
            if self.tools.iter().take(number).any(|other| other.name == tool.name) {
                let problem = "there are two of this name".to_owned();
                return Err(ServeError::Tool { name: tool.name.clone(), problem });
            }
        }
        ServedTools::start(self).await
    }
}
