# `haft lib`.

lib-removed = Removed { $name }
lib-not-used = this project does not use `{ $name }`; `haft lib list` shows what it uses
lib-of-auto-coder = `{ $name }` is in auto-coder's memory of this project (`.auto-coder`); remove it there
lib-refreshed = The documentation is up to date.
lib-bad-source = `{ $source }` is not the URL or path of a git repository
lib-added = Added { $library }; it is sent from the next request on
lib-already-added = { $library } was added already
lib-none = This project uses no libraries yet. Add one with `haft lib add NAME`.
lib-no-documents = `{ $library }` has no Markdown files
lib-fetching = fetching { $source }
lib-no-git = git is needed to fetch libraries: { $error }
lib-fetch-failed = git could not fetch the libraries: { $error }; `haft lib proxy` shows where they come from
