# `haft useful`.

useful-bad-lines = expected lines from 1, such as `10-20` or `7`
useful-removed = No longer in view: { $item }
useful-none = Nothing is kept in view. Add a range with `haft useful add PATH LINES DESCRIPTION`.
useful-unknown = nothing in view has the number { $number }; `haft useful list` shows all
useful-unreadable = (cannot be read now: { $error })
useful-no-description = the description is empty; say why the range matters
useful-refused = lines of `{ $given }` cannot be kept in view: { $error }
useful-added = In view: { $item }
useful-merged = It overlapped a known range and was merged with it.
useful-evicted = There were too many ranges; the oldest one was removed.
useful-line = { $number }. `{ $path }` lines { $start_line }-{ $end_line }: { $description }
