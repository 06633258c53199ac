# `haft rules`, `agents`, `skills`, `commands`, `tools` and `workflows`: what is there, adding and removing.

catalogue-untrusted = { $project } 未受信任，因此不列出其中的内容；运行 `haft trust` 可信任它
catalogue-empty =
    还没有{ $folder ->
        [rules] 规则
        [skills] 技能
        [commands] 命令
        [agents] 智能体
       *[workflows] 工作流
    }。用 `haft { $folder } add NAME FILE` 添加。
catalogue-built-in = 内置
catalogue-unused = 未使用：{ $path }（`{ $name }` 来自 { $by }）
catalogue-folders = 搜索的目录：
catalogue-there-are-none = 目前一个也没有
catalogue-there-are = 现有 { $names }
catalogue-unknown =
    没有名为 `{ $name }` 的{ $folder ->
        [rules] 规则
        [skills] 技能
        [commands] 命令
        [agents] 智能体
       *[workflows] 工作流
    }；{ $there }
catalogue-bad-name = `{ $name }` 不是有效的名称：只能使用字母、数字、`-` 和 `_`
catalogue-cannot-write = 无法写入 { $path }：{ $error }
catalogue-standard-input = 标准输入
catalogue-refused = { $given }：{ $what }；未添加任何内容
catalogue-added = 已添加 { $file }
catalogue-added-untrusted = 项目未受信任，因此暂不使用；运行 `haft trust` 可信任它
catalogue-shadowed = 它不会被使用：{ $shown } 优先
catalogue-built-in-name = `{ $name }` 是内置工具的名称
catalogue-bad-ending = 工具名不带扩展名，或以 .py、.sh、.js、.rb、.pl、.php、.go 或 .rs 结尾
catalogue-foreign = `{ $name }` 是 { $shown }，属于其他程序；请自行删除该文件
catalogue-folder = `{ $name }` 不止一个文件；请自行删除目录 { $folder }
catalogue-cannot-remove = 无法删除 { $shown }：{ $error }
catalogue-removed = 已删除 { $file }
catalogue-cannot-read = 无法读取 { $path }：{ $error }
catalogue-too-large = 超过 { $largest } KB；请缩短
catalogue-not-text = 不是 UTF-8 文本
catalogue-no-text = 内容为空；请指定文件，或通过标准输入提供内容
catalogue-sent-always = 每次请求都发送
catalogue-sent-index = 每次请求都发送（仅索引）
catalogue-sent-touched = 涉及 { $patterns } 后发送
catalogue-sent-read = 模型读取时发送
catalogue-folder-missing = { $path }（不存在）
catalogue-skill-too-large = 一个技能最多 { $most_files } 个文件、{ $most } MB
