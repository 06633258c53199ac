"""wrappers.py VERSION NPM-TREE PYPI-TREE OUT: packages for npm and PyPI around a staged tree with bin/haft and share/.

Both only carry files: the binary is what runs, no Node.js or Python stands between. The wheel also has the Python package of
sdk/python, which starts the binary. Nothing is published.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import time
import zipfile

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
ABOUT = "A coding agent for the terminal, built around a context engine."
PYTHON_PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "sdk/python/haft"
ADDRESS = "https://github.com/haft-agent/haft"


def files(tree):
    return sorted(path for path in tree.rglob("*") if path.is_file())


def mode(path):
    return 0o755 if os.access(path, os.X_OK) else 0o644


def npm(version, tree, out):
    manifest = {
        "name": "haft-agent",
        "version": version,
        "description": ABOUT,
        "license": "MIT OR Apache-2.0",
        "repository": {"type": "git", "url": f"git+{ADDRESS}.git"},
        "bin": {"haft": "bin/haft"},
        "man": [f"./share/man/man1/{path.name}" for path in files(tree / "share/man/man1")],
        "os": ["linux"],
        "cpu": [{"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]],
        "libc": ["glibc"],
    }
    target = out / f"haft-agent-{version}.tgz"
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, EPOCH) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:

            def add(name, content, mode):
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size, entry.mode, entry.mtime = len(content), mode, EPOCH
                archive.addfile(entry, io.BytesIO(content))

            add("package.json", (json.dumps(manifest, indent=2) + "\n").encode(), 0o644)
            for path in files(tree):
                add(path.relative_to(tree).as_posix(), path.read_bytes(), mode(path))


def glibc(binary):
    """The newest glibc whose symbols the binary needs."""
    said = subprocess.run(["readelf", "-V", binary], check=True, capture_output=True, text=True).stdout
    return max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", said))


def wheel(version, tree, out):
    tag = f"py3-none-manylinux_2_{glibc(tree / 'bin/haft')}_{platform.machine()}"
    name, record = f"haft_agent-{version}", []
    with zipfile.ZipFile(out / f"{name}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(path, content, mode=0o644):
            entry = zipfile.ZipInfo(path, time.gmtime(max(EPOCH, 315_532_800))[:6])
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}")

        for path in files(tree):
            inner = path.relative_to(tree).as_posix()
            place = "scripts/haft" if inner == "bin/haft" else f"data/{inner}"
            add(f"{name}.data/{place}", path.read_bytes(), mode(path))
        for path in [*sorted(PYTHON_PACKAGE.glob("*.py")), PYTHON_PACKAGE / "py.typed"]:
            add(f"haft/{path.name}", path.read_bytes())
        fields = ["Metadata-Version: 2.1", "Name: haft-agent", f"Version: {version}", f"Summary: {ABOUT}",
                  "License: MIT OR Apache-2.0", f"Home-page: {ADDRESS}"]
        add(f"{name}.dist-info/METADATA", ("\n".join(fields) + "\n").encode())
        add(f"{name}.dist-info/WHEEL", f"Wheel-Version: 1.0\nGenerator: haft\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        listing = "\n".join([*record, f"{name}.dist-info/RECORD,,"]) + "\n"
        archive.writestr(zipfile.ZipInfo(f"{name}.dist-info/RECORD", time.gmtime(max(EPOCH, 315_532_800))[:6]), listing)


if __name__ == "__main__":
    release = sys.argv[1]
    npm_tree, pypi_tree, folder = (pathlib.Path(argument) for argument in sys.argv[2:])
    npm(release, npm_tree, folder)
    wheel(release, pypi_tree, folder)
