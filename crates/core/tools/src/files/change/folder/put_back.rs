//! Puts back a file that an exchange took from another process, even if that process continues to
//! write to it.

use std::ffi::OsStr;
use std::{io, mem, thread, time::Duration};

use super::OpenFolder;

/// The pause between two checks whether other processes still write to a file.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// The maximum number of checks whether other processes still write to a file.
const MAX_CHECKS: usize = 25;

/// The maximum number of exchanges with a process that keeps writing.
const MAX_EXCHANGES: usize = 100;

impl OpenFolder {
    /// Undoes an exchange that took another process's content out of `name`: puts that content
    /// back, and removes `ours`, the content that `name` has now. `look` reads the content of a
    /// name.
    ///
    /// Other processes may write between any two steps. The content that an exchange takes out of
    /// `name` is then newer than all content put there, and is put back in turn. A process that
    /// opened the file before it was taken out may still write to it, so this function waits until
    /// the content is stable. Returns true if no other process wrote. Otherwise, `name` has the
    /// content written last, and the content before that has the temporary name.
    pub fn put_back_file<Content: PartialEq>(
        &self,
        (temporary, name): (&OsStr, &OsStr),
        ours: Content,
        mut look: impl FnMut(&OsStr) -> io::Result<Content>,
    ) -> io::Result<bool> {
        let mut last_put = ours;
        for others in 0..MAX_EXCHANGES {
            let put = read_until_stable(|| look(temporary))?;
            match self.exchange_files(temporary, name) {
                // Another process removed the file; it stays removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                result => result?,
            }
            match look(temporary)? == last_put {
                true if others == 0 => return self.remove_file(temporary).map(|()| true),
                true => break,
                false => last_put = put,
            }
        }
        Ok(false)
    }
}

/// Reads the content repeatedly. Returns the content when two consecutive reads agree, or after
/// [`MAX_CHECKS`] reads.
fn read_until_stable<Content: PartialEq>(
    mut look: impl FnMut() -> io::Result<Content>,
) -> io::Result<Content> {
    let mut seen = look()?;
    for _ in 0..MAX_CHECKS {
        thread::sleep(CHECK_INTERVAL);
        let before = mem::replace(&mut seen, look()?);
        if before == seen {
            break;
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn put_back_keeps_the_newest_content_of_concurrent_writers() {
        // The number of writes of the other process, one at each step; by renaming or in place; and
        // true if it removes the file at the end.
        let ways = (0..12).flat_map(|writes| [(writes, false), (writes, true)]);
        for ((writes, in_place), removes) in ways.flat_map(|way| [(way, false), (way, true)]) {
            let home = tempfile::tempdir().unwrap();
            let at = |name: &str| home.path().join(name);
            fs::write(at("file"), "ours").unwrap();
            fs::write(at("temporary"), "theirs 0").unwrap();
            let folder = OpenFolder::open(&home.path().canonicalize().unwrap()).unwrap();
            let mut written = 0;
            let placed = folder.put_back_file(
                ("temporary".as_ref(), "file".as_ref()),
                "ours".to_owned(),
                |name| {
                    let seen = fs::read_to_string(home.path().join(name));
                    if written < writes {
                        written += 1;
                        let name = if in_place { "file" } else { "other" };
                        fs::write(at(name), format!("theirs {written}")).unwrap();
                        fs::rename(at(name), at("file")).unwrap();
                    } else if removes {
                        let _ = fs::remove_file(at("file"));
                    }
                    seen
                },
            );
            let what = format!("{writes} writes, in place: {in_place}, then removed: {removes}");
            let last = fs::read_to_string(at("file")).ok();
            assert_eq!(
                last,
                (!removes).then(|| format!("theirs {writes}")),
                "{what}"
            );
            assert_eq!(placed.unwrap(), writes == 0 && !removes, "{what}");
        }
    }
}
