//! Integration tests of the binary: real processes, real sockets, a scripted model.

mod architecture;
mod bad_input;
mod context;
mod protocols;
mod rig;
mod surface;
mod turns;
