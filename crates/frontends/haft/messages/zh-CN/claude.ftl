# haft in the place of Claude Code: its command line.

claude-ignored = `{ $flag }` 在这里没有意义，已忽略
claude-ignored-setting = 设置 `{ $key }` 不生效，已忽略
claude-refused = 不支持 `{ $flag }`：没有它，发送的就不是你想要的会话
claude-prompt-tool = 不会询问 `--permission-prompt-tool { $tool }`：只支持 `stdio`；需要权限的操作会被拒绝
claude-wider-rule = 规则 `{ $rule }` 在这里无法表达，按范围更大的 `{ $wider }` 处理
claude-foreign-rule = 规则 `{ $rule }` 涉及这里没有的工具，已忽略
claude-ignored-hook = `--settings` 中的钩子 { $what } 不受支持，已忽略
