//! Collections over real folders, real processes and real sockets.

mod questions;
