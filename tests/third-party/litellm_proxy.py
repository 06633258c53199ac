"""The haft binary in front of litellm's proxy, which translates what it says for the scripted model behind it.

usage: litellm_proxy.py HAFT SCRIPTED_MODEL     in an environment with litellm[proxy]
"""

import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from haft_run import Checks, Place

# The proxy refuses to start without a strong one.
KEY = "sk-" + secrets.token_hex(32)

HERE = pathlib.Path(__file__).parent

# What haft speaks to the proxy, and what the proxy speaks to the model.
SPOKEN = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": "", "gemini": ""}
BEHIND = {"chat": "openai/scripted", "messages": "anthropic/claude-scripted", "generate": "gemini/gemini-scripted"}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def scripted(binary, folder):
    """Starts the scripted model; gives the process and its host."""
    urls = folder / "urls"
    server = subprocess.Popen([binary, HERE / "litellm.yaml"], stdout=urls.open("w"), stderr=(folder / "refused").open("w"))
    for _ in range(100):
        if urls.read_text().endswith("\n"):
            break
        time.sleep(0.1)
    base = next(word.split("=", 1)[1] for word in urls.read_text().split() if word.startswith("anthropic="))
    return server, base


def proxy(folder, base):
    """Starts litellm's proxy in front of it."""
    bases = {"chat": base + "/v1", "messages": base, "generate": base + "/v1beta"}
    models = "".join(
        f"  - model_name: {name}\n    litellm_params: {{ model: {model}, api_base: '{bases[name]}', api_key: sk-behind }}\n"
        for name, model in BEHIND.items()
    )
    (folder / "config.yaml").write_text(f"model_list:\n{models}litellm_settings:\n  drop_params: true\n")
    port = free_port()
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY, "NO_PROXY": "*"}
    command = [pathlib.Path(sys.executable).parent / "litellm", "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    log = (folder / "proxy.log").open("w")
    server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
    url = f"http://127.0.0.1:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(url + "/health/liveliness", timeout=2).read()
            return server, url
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.5)
    print((folder / "proxy.log").read_text()[-2000:])
    sys.exit("the proxy did not start")


def main():
    haft, model = sys.argv[1:]
    checks = Checks()
    servers = []
    with tempfile.TemporaryDirectory(prefix="haft-litellm-") as name:
        folder = pathlib.Path(name)
        try:
            server, base = scripted(model, folder)
            servers.append(server)
            server, url = proxy(folder, base)
            servers.append(server)
            for api, version in SPOKEN.items():
                for behind in BEHIND:
                    # The proxy turns cache markers into Gemini's stored contents, which the scripted model does not have.
                    keys = 'cache = { rule = "none" }' if (api, behind) == ("anthropic", "generate") else ""
                    with Place(haft, api, url + version, model=behind, model_keys=keys, more="attempts = 1", key=KEY) as place:
                        (place.project / "note.txt").write_text("The secret number is 4711.\n")
                        ran = place.run("Please read the note.", seconds=60)
                    results = ran.of("tool_result")
                    held = ran.code == 0 and ran.result.get("text") == "It says 4711. Grüße, 世界." and len(results) == 1
                    checks.check(f"haft speaks {api}, the model {behind}", held, ran)
            if checks.failed:
                print("refused behind the proxy:\n" + (folder / "refused").read_text()[:2000])
                print("the proxy:\n" + (folder / "proxy.log").read_text()[-3000:])
        finally:
            for server in reversed(servers):
                server.terminate()
                server.wait(timeout=20)
    sys.exit(1 if checks.failed else 0)


main()
