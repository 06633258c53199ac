# haft in the place of Claude Code: its command line.

claude-ignored = `{ $flag }` 在 haft 中不起作用，已忽略
claude-ignored-setting = 不支持设置 `{ $key }`，已忽略
claude-refused = 不支持 `{ $flag }`：没有它，发送的就不是你想要的会话
claude-prompt-tool = 不支持 `--permission-prompt-tool { $tool }`，只支持 `stdio`；需要许可的调用会被拒绝
claude-wider-rule = 规则 `{ $rule }` 在 haft 中无法表达，改用范围更大的 `{ $wider }`
claude-foreign-rule = 规则 `{ $rule }` 指定了 haft 没有的工具，已忽略
claude-ignored-hook = 不支持 `--settings` 中的钩子 { $what }，已忽略
