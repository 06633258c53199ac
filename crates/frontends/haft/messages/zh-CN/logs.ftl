# `haft logs`.

logs-none = { $folder } 中没有日志
