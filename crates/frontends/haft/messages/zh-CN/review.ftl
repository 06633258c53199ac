# `haft review`.

review-untrusted = `{ $root }` 未受信任，不会在其中运行 git；运行 `haft trust` 可信任它
review-nothing = 没有可评审的内容：{ $what } 为空
