# `haft hooks`.

hooks-none = 没有钩子。添加方法见 https://github.com/haft-agent/haft/blob/main/docs/hooks.md
hooks-untrusted = 否，未受信任
