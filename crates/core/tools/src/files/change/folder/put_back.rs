//! Putting back what an exchange took from someone else, while they go on writing.

use std::ffi::OsStr;
use std::{io, mem, thread, time::Duration};

use super::OpenFolder;

/// How long to wait at a time for others to end what they write, and how often.
const REST: Duration = Duration::from_millis(2);
const RESTS: usize = 25;

/// How often two files change places before whoever keeps writing has to settle it.
const EXCHANGES: usize = 100;

impl OpenFolder {
    /// Lets a temporary and `name`, which held `ours` a moment ago, change places again, and
    /// removes `ours`. `look` reads what stands under a name.
    ///
    /// Others may write between any two steps. What comes out of the place is then newer than all
    /// that went in, and goes back in its turn. Whoever opened a file to write in it before it
    /// was taken out still does so after: that is waited for. Says whether nobody wrote;
    /// otherwise what they wrote last stands, and what stood there before has the temporary's name.
    pub fn put_back<Content: PartialEq>(
        &self,
        (temporary, name): (&OsStr, &OsStr),
        ours: Content,
        mut look: impl FnMut(&OsStr) -> io::Result<Content>,
    ) -> io::Result<bool> {
        let mut last_put = ours;
        for others in 0..EXCHANGES {
            let put = at_rest(|| look(temporary))?;
            match self.exchange(temporary, name) {
                // They removed it, and that stands.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                result => result?,
            }
            match look(temporary)? == last_put {
                true if others == 0 => return self.remove(temporary).map(|()| true),
                true => break,
                false => last_put = put,
            }
        }
        Ok(false)
    }
}

/// What is seen once nobody seems to write any more.
fn at_rest<Content: PartialEq>(
    mut look: impl FnMut() -> io::Result<Content>,
) -> io::Result<Content> {
    let mut seen = look()?;
    for _ in 0..RESTS {
        thread::sleep(REST);
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
    fn others_who_go_on_writing_have_the_last_word() {
        // How often they write, each time something is looked at; by renaming or in place; and
        // whether they remove the file then.
        let ways = (0..12).flat_map(|writes| [(writes, false), (writes, true)]);
        for ((writes, in_place), removes) in ways.flat_map(|way| [(way, false), (way, true)]) {
            let home = tempfile::tempdir().unwrap();
            let at = |name: &str| home.path().join(name);
            fs::write(at("file"), "ours").unwrap();
            fs::write(at("temporary"), "theirs 0").unwrap();
            let folder = OpenFolder::open(&home.path().canonicalize().unwrap()).unwrap();
            let mut written = 0;
            let placed = folder.put_back(
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
