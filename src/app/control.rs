//! The sandbox's control surface for HTTP, so that HTTP knows no connector.

use countersign_sandbox::Sandbox;

/// The control surface.
#[derive(Debug, Clone)]
pub struct Control {
    sandbox: Sandbox,
}

impl Control {
    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self { sandbox }
    }

    /// The sandbox itself, for the demonstration.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }
}
