//! What haft knows of a project, and whether it may be obeyed.
//!
//! A folder is untrusted until its user says otherwise: until then nothing of it is run and nothing it says is obeyed. This
//! crate only looks at files and keeps the list of trusted folders; it runs nothing, and it reads no environment.
//!
//! Read first: [`TrustList`] (who is trusted), [`Footprint`] (what trust is given to).

mod footprint;
mod trust;

pub use footprint::{Footprint, INSTRUCTIONS};
pub use trust::{Standing, TrustError, TrustList};
