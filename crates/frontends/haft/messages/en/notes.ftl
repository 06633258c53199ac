# `haft notes`.

notes-deleted = Deleted note { $note }
notes-none = No notes yet. Add one with `haft notes add PATH TEXT`.
notes-none-about = There are no notes about `{ $path }`.
notes-empty = the note is empty; say what is worth knowing
notes-no-path = `{ $given }` does not exist; name a folder or file of the project
notes-added = Added note { $note }
notes-unreadable = cannot read `{ $given }`: { $error }
notes-outside = `{ $given }` is not part of the project `{ $project }`
notes-unknown = { $error }; `list` shows all notes
