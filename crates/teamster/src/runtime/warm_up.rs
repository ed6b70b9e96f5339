//! Starts the supervisor process before the first run.

use teamster_process::Keeper;

use super::{RunError, Runtime};
use crate::tokio_check;

impl Runtime {
    /// Starts the supervisor process, which otherwise starts with the first run, and waits until it answers. The first run then
    /// starts as fast as later ones. The removal of what crashed hosts left also starts now.
    ///
    /// Call it inside a Tokio runtime, for example while a server starts. If the supervisor already runs, the call only checks
    /// that it answers. A run never requires this call. If the supervisor process dies later, the next run starts another one.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use teamster::{RunRequest, Runtime};
    ///
    /// let runtime = Runtime::new();
    /// runtime.warm_up().await?;
    /// let result = runtime.run("claude", RunRequest::new("Say hello"))?.result().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The supervisor process does not start ([`RunError::Supervisor`]), or the Tokio runtime cannot drive an agent
    /// ([`RunError::Tokio`]), or this runtime is shut down ([`RunError::ShutDown`]).
    pub async fn warm_up(&self) -> Result<(), RunError> {
        tokio_check::check()?;
        self.live.check()?;
        self.sweep_once();
        // A keeper answers only if its supervisor does. It exits when it is dropped.
        Keeper::request(&self.supervisor).await.map(drop).map_err(RunError::Supervisor)
    }
}
