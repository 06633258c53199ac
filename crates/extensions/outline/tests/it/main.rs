//! Compares outlines of real files with lists checked by hand, and outlines text that is not code.

mod fixtures;
mod hostile;
