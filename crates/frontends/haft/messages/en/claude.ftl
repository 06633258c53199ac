# haft in the place of Claude Code: its command line.

claude-ignored = `{ $flag }` means nothing here and is left out
claude-ignored-setting = the setting `{ $key }` is not obeyed and is left out
claude-refused = `{ $flag }` is not supported: without it another conversation would be sent than is meant
claude-prompt-tool = `--permission-prompt-tool { $tool }` is not asked: only `stdio` is; what needs permission is denied
claude-wider-rule = the rule `{ $rule }` cannot be expressed here; it is taken as `{ $wider }`, which holds for more
claude-foreign-rule = the rule `{ $rule }` is about a tool that is not here, and is left out
