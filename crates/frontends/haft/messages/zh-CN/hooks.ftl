# `haft hooks`.

hooks-none = 没有钩子。添加方法见 `docs/hooks.md`。
hooks-untrusted = 否，未受信任
