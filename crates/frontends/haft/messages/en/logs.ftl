# `haft logs`.

logs-none = nothing is logged in { $folder }
