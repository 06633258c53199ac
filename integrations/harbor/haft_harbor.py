"""haft as an agent of Harbor (https://github.com/harbor-framework/harbor).

    harbor run -p TASKS --agent haft_harbor:Haft -m anthropic/claude-sonnet-4-5 --agent-env ANTHROPIC_API_KEY=…

The binary is copied from this machine into the task's container; haft needs nothing else there but glibc 2.34.
"""

import json
import shlex
import shutil
from pathlib import Path

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.agents.options import InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import Field

REMOTE_BINARY = "/usr/local/bin/haft"


class HaftOptions(InstalledAgentOptions):
    binary: str | None = Field(default=None, description="The haft binary on this machine. Default: `haft` in PATH.")
    permission_mode: str = Field(default="yolo", description="haft's permission mode. The container is the boundary; `auto` adds haft's own sandbox.")
    max_turns: int | None = Field(default=None, description="Maximum replies of the model.")
    max_budget_usd: float | None = Field(default=None, description="Maximum cost of a task; the model needs a price.")
    settings: dict[str, str] = Field(default_factory=dict, description="Configuration values for `--set`, such as providers.local.base_url.")


class Haft(BaseInstalledAgent):
    """Runs `haft run` in the container and exports the conversation as an ATIF trajectory."""

    capabilities = AgentCapabilities(atif=True, native_config=True)
    options_model = HaftOptions

    @staticmethod
    def name() -> str:
        return "haft"

    def get_version_command(self) -> str | None:
        return f"{REMOTE_BINARY} --version"

    def parse_version(self, stdout: str) -> str:
        return stdout.strip().removeprefix("haft ")

    @property
    def _home(self) -> str:
        return f"{self.environment_logs_dir}/haft"

    async def install(self, environment: BaseEnvironment) -> None:
        binary = shutil.which(self.options.binary or "haft")
        if binary is None:
            raise FileNotFoundError("haft is not in PATH; name the binary with --agent-kwarg binary=PATH")
        await environment.upload_file(binary, REMOTE_BINARY)
        await self.exec_as_root(environment, f"chmod 755 {REMOTE_BINARY}")
        await self.exec_as_agent(environment, f"mkdir -p {shlex.quote(self._home)}")
        if isinstance(self.config_source, Path):
            await environment.upload_file(self.config_source, f"{self._home}/config.toml")
        elif self.config_source is not None:
            raise ValueError("haft's configuration is a TOML file; name it with --agent-kwarg config=PATH")
        await self.exec_as_agent(environment, f"{REMOTE_BINARY} --version")

    def _arguments(self, instruction: str) -> list[str]:
        words = ["run", "--output-format", "json", "--permission-mode", self.options.permission_mode]
        if self.model_name:
            words += ["--model", self.model_name]
        if self.options.max_turns is not None:
            words += ["--max-turns", str(self.options.max_turns)]
        if self.options.max_budget_usd is not None:
            words += ["--max-budget-usd", str(self.options.max_budget_usd)]
        for key, value in self.options.settings.items():
            words += ["--set", f"{key}={value}"]
        return [*words, "--", instruction]

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        logs = str(self.environment_logs_dir)
        line = " ".join(shlex.quote(word) for word in self._arguments(instruction))
        await self.exec_as_agent(
            environment,
            # A question (3) and a limit (4) are ends of a task, not errors of the agent. The trajectory is exported in any case.
            f"{REMOTE_BINARY} {line} </dev/null >{logs}/result.json 2>{logs}/stderr.txt; code=$?; "
            f"id=$(sed -n 's/.*\"conversation_id\":\"\\([^\"]*\\)\".*/\\1/p' {logs}/result.json); "
            f"if [ -n \"$id\" ]; then {REMOTE_BINARY} conversations export \"$id\" --format atif >{logs}/trajectory.json 2>>{logs}/stderr.txt; fi; "
            f"case $code in 0|3|4) ;; *) tail -c 2000 {logs}/stderr.txt >&2; exit $code ;; esac",
            env={"HAFT_HOME": self._home},
        )

    def populate_context_post_run(self, context: AgentContext) -> None:
        path = self.logs_dir / "result.json"
        try:
            result = json.loads(path.read_text())
        except (OSError, ValueError):
            return
        usage = result.get("usage") or {}
        context.n_input_tokens = sum(usage.get(key, 0) for key in ("input", "cached_input", "cache_write"))
        context.n_cache_tokens = usage.get("cached_input", 0)
        context.n_output_tokens = usage.get("output", 0)
        context.metadata = {key: result.get(key) for key in ("outcome", "code", "turns", "conversation_id")}
        cost = result.get("cost")
        if isinstance(cost, dict) and not cost.get("incomplete"):
            context.cost_usd = cost["total"]
