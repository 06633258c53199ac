//! The folder that programs reading the public skills format share.

use super::Convention;
use crate::ground::Kind;

pub(super) const FOLDERS: &[Convention] =
    &[Convention { kind: Kind::Skills, project: &[".agents/skills"], home: &[".agents/skills"], repositories: &[] }];
