//! Outlines of real files against lists checked by hand, and of text that is no code at all.

mod fixtures;
mod hostile;
