//! Encoding and decoding.
