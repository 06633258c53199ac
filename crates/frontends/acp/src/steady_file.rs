//! A file that another program reads by its path while haft holds the folder.
//!
//! An editor has only the path. A command can replace a folder on the way with a link and put it
//! back, so a comparison before and after proves nothing. On Linux, the folders on the way are
//! therefore watched. On other systems there is no sandbox, and only the comparison is made.
//!
//! Invariant: haft itself reads and writes only in the folder that was opened, and never through a
//! link.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_agent::OpenFolder;

#[cfg(target_os = "linux")]
use way_watch::WayWatch;

/// A regular file in an open folder.
pub(crate) struct SteadyFile {
    folder: OpenFolder,
    name: OsString,
    #[cfg(target_os = "linux")]
    watch: WayWatch,
}

impl SteadyFile {
    /// Opens the folder of an existing file. Links in the path are resolved.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // The watch begins first: a change before it makes opening the folder fail.
        #[cfg(target_os = "linux")]
        let watch = WayWatch::start(&real)?;
        Ok(Self {
            folder: OpenFolder::open(folder)?,
            name: name.to_owned(),
            #[cfg(target_os = "linux")]
            watch,
        })
    }

    /// Returns the path of the file, which contains no links.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.folder.symlink_metadata(&self.name)
    }

    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        read_file(&self.folder, &self.name)
    }

    /// True if the path led to this file without interruption since it was opened. If that cannot
    /// be determined, returns false.
    pub(crate) fn was_steady(&self) -> bool {
        let id = |folder: &OpenFolder| {
            let seen = folder.symlink_metadata(".".as_ref()).ok()?;
            Some((seen.dev(), seen.ino()))
        };
        let again = OpenFolder::open(self.folder.path());
        let is_same =
            again.is_ok_and(|again| id(&again).is_some() && id(&again) == id(&self.folder));
        #[cfg(target_os = "linux")]
        let is_same = is_same && self.watch.is_unchanged();
        is_same
    }

    /// Replaces the content of the file, which must still be `expected`.
    pub(crate) fn replace(&self, expected: &[u8], content: &[u8]) -> io::Result<()> {
        let permissions = self.metadata()?.permissions();
        let temporary = OpenFolder::temporary_name(".haft-save-")?;
        let mut file = self.folder.create_file(&temporary, 0o600)?;
        let written = file
            .write_all(content)
            .and_then(|()| file.set_permissions(permissions))
            .and_then(|()| file.sync_all())
            .and_then(|()| self.folder.exchange_files(&temporary, &self.name));
        if let Err(error) = written {
            let _ = self.folder.remove_file(&temporary);
            return Err(error);
        }
        if read_file(&self.folder, &temporary).is_ok_and(|replaced| replaced == expected) {
            return self.folder.remove_file(&temporary);
        }
        self.folder.exchange_files(&temporary, &self.name)?;
        self.folder.remove_file(&temporary)?;
        Err(io::Error::other("another program changed the file"))
    }
}

fn read_file(folder: &OpenFolder, name: &std::ffi::OsStr) -> io::Result<Vec<u8>> {
    let mut file = folder.open_for_reading(name)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(target_os = "linux")]
mod way_watch {
    //! Notices changes of the folders on the way to a file.

    use std::collections::HashMap;
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::io::Errno;

    pub(super) struct WayWatch {
        events: OwnedFd,
        /// The name on the way in each watched folder, by the number of the folder.
        names: HashMap<i32, OsString>,
    }

    impl WayWatch {
        /// Watches every folder on the way to `path`, from the outermost one.
        pub(super) fn start(path: &Path) -> io::Result<Self> {
            let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let mask = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ONLYDIR;
            let mut names = HashMap::new();
            let steps: Vec<_> = path.ancestors().collect();
            for step in steps.iter().rev() {
                let (Some(folder), Some(name)) = (step.parent(), step.file_name()) else {
                    continue;
                };
                match inotify::add_watch(&events, folder, mask) {
                    Ok(number) => drop(names.insert(number, name.to_owned())),
                    // The user cannot read the folder, and a command cannot change it.
                    Err(Errno::ACCESS) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(Self { events, names })
        }

        pub(super) fn is_unchanged(&self) -> bool {
            let mut buffer = [MaybeUninit::uninit(); 4_096];
            let mut reader = inotify::Reader::new(&self.events, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let is_lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                        let name = event
                            .file_name()
                            .map(|name| OsStr::from_bytes(name.to_bytes()));
                        let is_on_the_way = self
                            .names
                            .get(&event.wd())
                            .is_some_and(|own| Some(own.as_os_str()) == name);
                        if is_lost || is_on_the_way {
                            return false;
                        }
                    }
                    Err(error) => return error == Errno::WOULDBLOCK,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A project with the file `d/file`, and a folder outside of it with another `file`.
    struct Site(tempfile::TempDir);

    impl Site {
        fn new() -> Self {
            let site = Self(tempfile::tempdir().unwrap());
            for folder in ["project/d", "outside"] {
                fs::create_dir_all(site.path(folder)).unwrap();
                fs::write(site.path(folder).join("file"), folder).unwrap();
            }
            site
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn open(&self) -> SteadyFile {
            SteadyFile::open(&self.path("project/d/file")).unwrap()
        }
    }

    #[test]
    fn steady_file_notices_a_path_that_led_elsewhere_for_a_moment() {
        let site = Site::new();
        let file = site.open();
        fs::write(site.path("project/d/other"), "").unwrap();
        assert!(file.was_steady(), "another file is of no interest");
        let ways: [fn(&Site); 4] = [
            |site| {
                // The folder becomes a link.
                fs::rename(site.path("project/d"), site.path("project/away")).unwrap();
                symlink(site.path("outside"), site.path("project/d")).unwrap();
                fs::remove_file(site.path("project/d")).unwrap();
                fs::rename(site.path("project/away"), site.path("project/d")).unwrap();
            },
            |site| {
                // So does a folder above it.
                fs::rename(site.path("project"), site.path("away")).unwrap();
                symlink(site.path("outside"), site.path("project")).unwrap();
                fs::remove_file(site.path("project")).unwrap();
                fs::rename(site.path("away"), site.path("project")).unwrap();
            },
            |site| {
                // So does the file.
                fs::rename(site.path("project/d/file"), site.path("kept")).unwrap();
                symlink(site.path("outside/file"), site.path("project/d/file")).unwrap();
                fs::rename(site.path("kept"), site.path("project/d/file")).unwrap();
            },
            |site| {
                // The folder is exchanged in one step, twice.
                let exchange = || {
                    rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        site.path("project/d"),
                        rustix::fs::CWD,
                        site.path("outside"),
                        rustix::fs::RenameFlags::EXCHANGE,
                    )
                    .unwrap();
                };
                exchange();
                exchange();
            },
        ];
        for (number, way) in ways.into_iter().enumerate() {
            let file = site.open();
            assert!(file.was_steady());
            way(&site);
            assert!(!file.was_steady(), "way {number}");
        }
    }

    #[test]
    fn steady_file_replaces_only_the_content_it_knows_in_the_folder_it_opened() {
        let site = Site::new();
        fs::set_permissions(
            site.path("project/d/file"),
            fs::Permissions::from_mode(0o640),
        )
        .unwrap();
        let file = site.open();
        file.replace(b"project/d", b"new").unwrap();
        let mode = fs::metadata(site.path("project/d/file")).unwrap().mode() & 0o777;
        assert_eq!((file.read().unwrap(), mode), (b"new".to_vec(), 0o640));
        assert!(file.replace(b"project/d", b"newer").is_err());
        fs::rename(site.path("project/d"), site.path("project/away")).unwrap();
        symlink(site.path("outside"), site.path("project/d")).unwrap();
        file.replace(b"new", b"newest").unwrap();
        let text = |name: &str| fs::read_to_string(site.path(name)).unwrap();
        assert_eq!(text("outside/file"), "outside");
        assert_eq!(text("project/away/file"), "newest");
        let left = fs::read_dir(site.path("project/away")).unwrap().count();
        assert_eq!(left, 1, "no temporary file stays");
    }
}
