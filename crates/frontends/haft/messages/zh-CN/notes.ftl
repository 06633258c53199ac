# `haft notes`.

notes-deleted = 已删除笔记 { $note }
notes-none = 还没有笔记。用 `haft notes add PATH TEXT` 添加。
notes-none-about = 没有关于 `{ $path }` 的笔记。
notes-empty = 笔记为空；请写下值得记住的内容
notes-no-path = `{ $given }` 不存在；请指定项目中的目录或文件
notes-added = 已添加笔记 { $note }
notes-unreadable = 无法读取 `{ $given }`：{ $error }
notes-outside = `{ $given }` 不属于项目 `{ $project }`
notes-unknown = { $error }；`list` 显示所有笔记
