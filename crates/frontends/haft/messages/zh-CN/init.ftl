# `/init`.

init-help = 根据项目内容编写 AGENTS.md
init-quote = `/init` 会读取项目并写出 AGENTS.md：约 { $tokens } token，${ $money }
init-quote-unknown = `/init` 会读取项目并写出 AGENTS.md：约 { $tokens } token；该模型没有价格信息
