"""How each agent is started on a case. An agent writes its configuration below `home` and returns its command line."""

import dataclasses
import json
import pathlib
import shutil
import subprocess


@dataclasses.dataclass
class Place:
    root: pathlib.Path
    url: str
    attacker: str
    python: str
    office: pathlib.Path
    granted: list
    programs: pathlib.Path
    prompt: str

    @property
    def server(self):
        """The command line of the MCP server, or nothing where the case has none."""
        return [self.python, str(self.office), str(self.root / "case.json"), str(self.root / "office.log")] if self.granted else []


class Haft:
    name, modes, trust = "haft", ["plan", "ask", "accept-edits", "auto", "yolo"], [False, True]
    # The mode that confines nothing, in any folder, runs once.
    unconfined = "yolo"
    own = {"home/.config/haft", "home/.local/share/haft", "home/.local/state/haft", "home/.cache/haft"}

    def __init__(self, binary):
        self.binary = binary

    def prepare(self, place, mode, trusted, environment):
        folder = place.root / "home/.config/haft"
        folder.mkdir(parents=True)
        allowed = json.dumps([f"mcp__office__{name}" for name in place.granted])
        server = f"[mcp_servers.office]\ncommand = {json.dumps(place.server[0])}\nargs = {json.dumps(place.server[1:])}\nsandbox = false\n" if place.server else ""
        (folder / "config.toml").write_text(
            f'model = "local/model"\n[providers.local]\napi = "openai-chat"\nbase_url = "{place.url}"\n'
            '[models."local/model"]\ncontext_window = 200000\nmax_output_tokens = 8192\n'
            # The attacker's address is private here; a public one would need no such entry.
            f'[web]\ncrawl = true\nallow_private = ["{place.attacker}"]\n[permissions]\nallow = {allowed}\n{server}'
        )
        if trusted:
            subprocess.run([self.binary, "trust", str(place.root / "project")], env=environment, check=True, capture_output=True)
        return [self.binary, "run", "--permission-mode", mode, "--max-turns", "80", "--", place.prompt], {}


class Codex:
    name, modes, trust = "codex", ["read-only", "workspace-write"], [True]
    unconfined = ""
    own = {"home/.codex"}

    def __init__(self, binary):
        self.binary = binary

    def prepare(self, place, mode, trusted, environment):
        home = place.root / "home/.codex"
        home.mkdir()
        server = f"[mcp_servers.office]\ncommand = {json.dumps(place.server[0])}\nargs = {json.dumps(place.server[1:])}\n" if place.server else ""
        server += "".join(f'[mcp_servers.office.tools.{name}]\napproval_mode = "approve"\n' for name in place.granted) if server else ""
        trust = f'[projects."{place.root / "project"}"]\ntrust_level = "{"trusted" if trusted else "untrusted"}"\n'
        (home / "config.toml").write_text(
            'model = "model"\nmodel_provider = "local"\napproval_policy = "never"\n'
            f'[model_providers.local]\nname = "local"\nbase_url = "{place.url}"\nwire_api = "responses"\n{trust}{server}'
        )
        return [self.binary, "exec", "--skip-git-repo-check", "-s", mode, place.prompt], {"CODEX_HOME": str(home)}


class Goose:
    # Its other modes end a run without a terminal at the first call.
    name, modes, trust = "goose", ["auto"], [False]
    unconfined = ""
    own = {"home/.config/goose", "home/.local/share/goose", "home/.local/state/goose", "home/.cache/goose"}

    def __init__(self, binary):
        self.binary = binary

    def prepare(self, place, mode, trusted, environment):
        more = {
            "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "model", "OPENAI_API_KEY": "none", "GOOSE_MODE": mode, "OPENAI_HOST": place.url.removesuffix("/v1"),
            "OPENAI_BASE_PATH": "v1/chat/completions", "GOOSE_DISABLE_KEYRING": "1",
        }
        command = [self.binary, "run", "--no-session", "--quiet", "--with-builtin", "developer", "--max-turns", "80"]
        if place.server:
            command += ["--with-extension", " ".join(place.server)]
        return [*command, "-t", place.prompt], more


def find(name, haft):
    if name == "haft":
        return Haft(haft) if pathlib.Path(haft).exists() else None
    binary = shutil.which(name)
    return {"codex": Codex, "goose": Goose}[name](binary) if binary else None
