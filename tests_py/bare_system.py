"""A system in a folder, with little more than apt: what a package wants and does not name is missing there."""

import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def run(command, **options):
    """Standard output; fails with all that the command printed."""
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", **options)
    assert result.returncode == 0, f"{command}: {result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def need(*tools):
    """Skips where one is not installed, or where this is not root, whom they want."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if os.geteuid() != 0:
        pytest.skip("a system in a folder is made and entered by root")


class BareSystem:
    def __init__(self, root):
        self.root = Path(root)
        self.release = platform.freedesktop_os_release()["VERSION_CODENAME"]
        run(["debootstrap", "--variant=minbase", "--include=python3-venv", self.release, self.root])

    def put(self, *paths):
        for path in paths:
            shutil.copy(path, self.root / "root")

    def run(self, *command):
        """Runs it in the system's /root, with nothing of this machine's environment."""
        enter = f'mount -t proc proc "{self.root}/proc" && exec chroot "{self.root}" env -C /root "$@"'
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {"PATH": path, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        return run(["unshare", "--mount", "sh", "-c", enter, "sh", *command], env=environment, timeout=600)

    def shell(self, script):
        return self.run("sh", "-ec", script)


@pytest.fixture(scope="module")
def bare_system():
    need("debootstrap", "unshare", "chroot")
    with tempfile.TemporaryDirectory() as folder:
        yield BareSystem(folder)
