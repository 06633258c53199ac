# `haft man`.

man-written = 已将 { $count } 页写入 { $folder }
man-unknown = 没有命令 `haft { $command }`
