# `haft config`.

config-set = set `{ $key }` in { $file }
config-overridden = `{ $key }` is also set by the environment variable `{ $name }`, which is used instead of the file
config-unset = removed `{ $key }` from { $file }
config-not-set = `{ $key }` is not set
config-not-set-in = `{ $key }` is not set in { $file }
config-unknown-key = `{ $key }` is not a configuration key{ $near }
config-no-key = `{ $key }` is not a key; write `section.key`, with quotes around parts that are not plain names: `models."openai/gpt-5".context_window`
config-not-a-table = `{ $key }` lies below a value that is not a table
config-edited = changed { $file }
config-edit-same = nothing changed in { $file }
config-edit-again = e edits it again, Enter leaves the file as it was:
config-edit-refused = the file is left as it was
config-edit-meanwhile = { $file } was changed by another program in the meantime; it is left as it is now
config-near = ; did you mean `{ $near }`?
