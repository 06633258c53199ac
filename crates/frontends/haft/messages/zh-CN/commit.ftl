# `haft commit`.

commit-nothing = 没有可提交的内容：git 跟踪的文件都没有变化
commit-nothing-staged = 暂存区为空；用 `git add` 暂存修改，或用 `haft commit -a` 提交所有已修改的文件
commit-no-message = 模型没有给出提交说明；未提交
commit-cost = 生成提交说明用了 { $tokens } token，${ $money }
commit-cost-unknown = 生成提交说明用了 { $tokens } token；该模型没有价格信息
commit-needs-yes = 未提交：此处无法询问；加 `--yes` 可不经询问直接提交
commit-ask = 用这个说明提交吗？[y/N]
commit-not-done = 未提交
