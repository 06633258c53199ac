# `haft count`.

count-unreadable = cannot read `{ $file }`: { $error }
