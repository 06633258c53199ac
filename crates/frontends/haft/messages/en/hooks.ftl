# `haft hooks`.

hooks-none = There are no hooks. How to add one: https://github.com/haft-agent/haft/blob/main/docs/hooks.md
hooks-untrusted = no, not trusted
