# haft in the place of Claude Code: its command line.

claude-ignored = `{ $flag }` has no effect in haft and is ignored
claude-ignored-setting = the setting `{ $key }` is not supported and is ignored
claude-refused = `{ $flag }` is not supported: without it, a different conversation would be sent than you mean
claude-prompt-tool = `--permission-prompt-tool { $tool }` is not supported, only `stdio` is; calls that need permission are denied
claude-wider-rule = the rule `{ $rule }` cannot be expressed in haft; `{ $wider }` is used instead, which covers more
claude-foreign-rule = the rule `{ $rule }` names a tool that haft does not have, and is ignored
claude-ignored-hook = the hook { $what } of `--settings` is not supported and is ignored
