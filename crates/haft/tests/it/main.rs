//! Integration tests of the binary: real processes, real sockets, a scripted model.

mod architecture;
mod bad_input;
mod context;
mod engine_of_context;
mod knowledge;
mod long_session;
mod models;
mod protocols;
mod rig;
mod surface;
mod text_protocols;
mod turns;
