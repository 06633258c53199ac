# `haft rag`.

rag-there-are-none = 目前一个也没有
rag-there-are = 现有 { $names }
rag-unknown = 没有文档集合 `{ $name }`；{ $there }；用 `haft rag add` 添加
rag-declared = 已在 `{ $file }` 中声明 `{ $name }`。
rag-indexed = 读取了 { $read } 个文件：{ $files } 个有文本，{ $passages } 个段落，索引大小 { $size }。
rag-no-text = 警告：这些目录中没有文本；被忽略的、隐藏的和过大的文件不计入
rag-removed = 已从 `{ $file }` 中移除 `{ $name }`。
rag-not-a-folder = `{ $folder }` 不是目录
rag-bad-path = 路径 `{ $folder }` 不是 UTF-8，无法存储
rag-not-a-table = `{ $file }` 中的 `{ $section }` 不是独立的表；请手动添加文档集合
rag-already-declared = `{ $file }` 中已声明 `{ $name }`；请在该文件中修改，或用 `haft rag remove { $name }` 移除
rag-not-declared = `{ $file }` 中没有声明文档集合 `{ $name }`；用 `haft rag list` 查看
rag-none = 还没有文档集合。用 `haft rag add NAME DIR` 添加。
rag-no-question = 问题为空
rag-no-hits = 没有找到。试试文档中会用到的词。
rag-not-local = `{ $address }` 不是回环地址；请用 127.0.0.1 或 [::1]
rag-cannot-listen = 无法监听 `{ $address }`：{ $error }
rag-serving =
    正在 http://{ $address }/v1 提供 { $names }
    { $token }
rag-answering = 答案由 { $models } 撰写。
rag-already-served = `{ $name }` 本身就是服务器；只提供由目录组成的文档集合
rag-nothing-to-serve = 没有可提供的、由目录组成的文档集合；用 `haft rag add NAME DIR` 添加
rag-no-token = 未设置环境变量 `{ $variable }`；请导出令牌，或去掉 `--token-env`
rag-token = 令牌：{ $token }
