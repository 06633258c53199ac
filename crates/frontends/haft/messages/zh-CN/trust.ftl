# `haft trust`, and the question in a folder that is not trusted.

trust-changed-meanwhile = 在你回答之前文件发生了变化：没有信任该目录。请重新检查。
trust-whole-project = { $folder } 属于该项目：信任适用于整个项目。
trust-server = MCP 服务器 { $name }：主机 { $network }；可写目录 { $folders }
trust-state = { $folder }：{ $state }
trust-heading-changed = 自上次信任后有变化：
trust-heading-run = 将会运行：
trust-heading-instructions = 将会加载的指令文件：
trust-heading-tighten = 将会收紧的设置：
trust-heading-ignored = 将会忽略：
trust-heading-unreadable = 将使 haft 无法启动：
trust-heading-grants = 将会授予的权限：
trust-server-none = 无
trust-revoked = { $folder } 不再受信任。
trust-was-not-trusted = { $folder } 原本就未受信任。
trust-granted =
    { $folder } 已受信任。{ $files ->
        [0] 其中没有会运行的文件。
       *[other] 其中有 { $files } 个文件会运行；任何一个发生变化，信任即失效。
    }
trust-question = 没有这些文件，haft 也能在此工作。信任此目录吗？（y = 是，Enter = 否）
trust-more = （可能还有更多：没有搜索所有目录）
