# `haft count`.

count-unreadable = 无法读取 `{ $file }`：{ $error }
