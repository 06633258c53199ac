# `haft worktrees`.

worktrees-none = No copies are kept.
worktrees-unknown = no copy is called `{ $id }`; `haft worktrees list` lists them
worktrees-several = `{ $id }` matches { $count } copies; give more of the id
worktrees-no-repository = the repository of `{ $path }` is gone: delete the folder and the `.base` file beside it yourself
worktrees-removed = Removed { $path }.
worktrees-removed-patch = Removed { $path }. What was not merged is in { $patch }, for `git apply`.
