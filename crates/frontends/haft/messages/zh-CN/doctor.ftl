# `haft doctor`.

doctor-config = { $file } 有效
doctor-variables = 以 `HAFT_` 开头的变量全部有效
doctor-variables-unknown = 有 { $count } 个以 `HAFT_` 开头的变量不起作用
doctor-installed =
    haft { $version }，{ $by ->
        [archive] 从压缩包解压
        [cargo] 用 cargo 安装
        [checkout] 从源代码构建
        [deb] 以 Debian 软件包形式安装
        [make] 用 make 安装
        [npm] 用 npm 安装
        [pypi] 用 pip 安装
       *[unknown] 安装方式未知
    }：{ $path }
doctor-newer = 有更新的版本 { $newest }；当前是 { $version }
doctor-newest = 最新版本是 { $newest }
doctor-newer-failed = { $address } 没有给出版本：{ $error }
doctor-newer-no-name = 应答中没有 `tag_name`
doctor-hint-damaged = `haft doctor --salvage` 导出仍可读取的内容，`haft conversations backup list` 显示备份
doctor-hint-unreadable = `haft doctor --salvage` 导出其中仍可读取的内容；之后即可删除
doctor-hint-backup = `haft conversations backup` 立即备份
doctor-salvage-nothing = 没有可抢救的内容：{ $database } 不存在
doctor-salvage-complete = 没有缺失
doctor-salvage-lost = { $lost } 条消息无法读取
doctor-salvage-done =
    { $conversations } 个会话、{ $messages } 条消息已导出到 { $folder }；{ $lost }。
    要使用它们，请移走 { $database }，然后运行 `haft conversations import { $folder }`。
doctor-salvage-copy = 从日志损坏的副本中读出的内容在 { $copy } 中。
doctor-outputs-none = 还没有超长的输出
doctor-outputs-unreadable-folder = 无法读取 { $folder }：{ $error }
doctor-outputs = { $count } 份长输出，{ $size }
doctor-outputs-unreadable = 部分长输出无法读取
doctor-servers = 你的 { $confined } 个 MCP 服务器在沙箱中运行
doctor-servers-outside = 在沙箱之外以你的身份运行（`sandbox = false`）：{ $names }
doctor-store = 应答正常，存有 { $messages } 条消息
doctor-commands = 命令在监管进程下正常运行
doctor-commands-wrong-exit = 本应以 7 退出的命令，实际结果为 { $outcome }
doctor-commands-failed = 无法运行命令：{ $error }
doctor-sandbox-failed = 无法建立沙箱：{ $error }
doctor-model-none = 未选择模型；请在 config.toml 中设置 `model`
doctor-model = `{ $name }` 的服务器应答正常，列出 { $models } 个模型
doctor-model-failed = `{ $name }` 的服务器：{ $error }；`haft models test` 显示详情
doctor-model-timeout = { $seconds } 秒内没有应答
doctor-health =
    { $health ->
        [skipped] -
        [repaired] 已修复
        [warning] 警告
        [damaged] 已损坏
       *[ok] 正常
    }
