"""A Harbor environment without a container engine, to try an agent: commands run on this machine, in a root folder of their own.

It needs Linux with user namespaces (`unshare --map-root-user --mount`). It sees the machine's programs and network; it confines nothing.
"""

import asyncio
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

SHARED = ("bin", "sbin", "lib", "lib64", "usr", "etc", "opt", "dev", "proc", "sys", "run", "root", "home")
COPIED_TO = "usr/local/bin"


class LocalEnvironment(BaseEnvironment):
    """Runs commands in a folder that looks like the root of a container."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._root = Path(tempfile.mkdtemp(prefix="harbor-local-"))

    @staticmethod
    def type() -> str:
        return "local"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    @classmethod
    def resource_capabilities(cls):
        return None

    def _validate_definition(self):
        pass

    def _place(self, path: str) -> Path:
        """Returns the place of an absolute path of the environment on this machine."""
        return self._root / path.lstrip("/")

    async def start(self, force_build: bool) -> None:
        for name in (*SHARED, COPIED_TO, "tmp", "app", "tests", "solution", "logs/agent", "logs/verifier", "logs/artifacts"):
            self._place(name).mkdir(parents=True, exist_ok=True)
        (self._root / "binaries").mkdir(exist_ok=True)

    async def stop(self, delete: bool):
        if delete:
            shutil.rmtree(self._root, ignore_errors=True)

    def _host(self, path: str) -> Path:
        relative = path.lstrip("/")
        return self._root / "binaries" / Path(relative).name if relative.startswith(COPIED_TO) else self._place(path)

    async def upload_file(self, source_path, target_path: str):
        target = self._host(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    async def upload_dir(self, source_dir, target_dir: str):
        shutil.copytree(source_dir, self._host(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path):
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._host(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir):
        shutil.copytree(self._host(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:
        mounts = "".join(f"[ -d /{name} ] && mount --rbind /{name} {name}; " for name in SHARED)
        folder = cwd or self.task_env_config.workdir or "/app"
        script = (
            f"cd {shlex.quote(str(self._root))} && {{ {mounts} mount --bind binaries {COPIED_TO}; true; }} 2>/dev/null; "
            f"exec chroot . /bin/bash -c {shlex.quote(f'cd {shlex.quote(folder)} && {command}')}"
        )
        variables = {"PATH": f"/usr/local/bin:{os.environ['PATH']}", "HOME": "/app", "LANG": "C.UTF-8"}
        merged = variables | (self._merge_env(env) or {})
        process = await asyncio.create_subprocess_exec(
            "unshare", "--map-root-user", "--mount", "/bin/sh", "-c", script,
            env=merged, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            process.kill()
            await process.wait()
            return ExecResult(stdout="", stderr="timed out", return_code=124)
        return ExecResult(stdout=stdout.decode("utf-8", "replace"), stderr=stderr.decode("utf-8", "replace"), return_code=process.returncode)
