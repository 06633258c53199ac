# `haft man`.

man-written =
    wrote { $count ->
        [one] 1 page
       *[other] { $count } pages
    } to { $folder }
man-unknown = there is no command `haft { $command }`
