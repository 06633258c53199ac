# `haft trust`, and the question in a folder that is not trusted.

trust-changed-meanwhile = 在你回答之前文件发生了变化：没有信任该目录。请重新检查。
trust-whole-project = { $folder } 属于该项目：信任适用于整个项目。
trust-server = MCP 服务器 { $name }：可访问的主机：{ $network }；可写入的目录：{ $folders }
trust-state = { $folder }：{ $state }
trust-heading-changed = 自你信任该目录以来有变化的文件：
trust-heading-run = 将会运行：
trust-heading-instructions = 将会读取的文件：
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
trust-question = 不信任，haft 也能在此工作；`/trust` 会再次询问。信任此目录吗？（y = 是，Enter = 否）
trust-more = （可能还有更多：没有搜索所有目录）
trust-meaning = 如果信任此目录，haft 会把其中的指令文件发给模型，自行运行下面的命令，并在此使用 git。模型的修改和命令仍需你的许可。
trust-meaning-without-commands = 如果信任此目录，haft 会把其中的指令文件发给模型，并在此使用 git。其中没有会自行运行的内容。模型的修改和命令仍需你的许可。
trust-command-hook = 钩子 { $name }：{ $line }（{ $file }）
trust-command-server = MCP 服务器 { $name }：{ $line }（{ $file }）
trust-command-program = 外部工具：{ $line }
trust-choice-title = 信任此目录吗？
trust-choice-no = 否，保持不信任
trust-choice-yes = 是，信任
trust-already = { $folder } 已受信任；`haft trust --revoke` 可取消信任。
trust-taken-up = { $folder } 已受信任。其中的文件从你的下一条消息起生效。
