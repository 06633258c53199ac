# `haft man`.

man-written = wrote { $count } pages to { $folder }
man-unknown = there is no command `haft { $command }`
