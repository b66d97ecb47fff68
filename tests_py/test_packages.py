"""The tarball, the wheel, the .deb and the container image: each answers in a bare system of this machine's release."""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from bare_system import bare_system, need, run  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "build" / "release" / "packages"
ASK = ("run", "tiny.gguf", "-p", "the thin", "-n", "8", "--ignore-eos")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def packages():
    need("dpkg-shlibdeps")
    run(["bash", ROOT / "scripts" / "package.sh"])
    return PACKAGES


@pytest.fixture(scope="module")
def answer(tiny_model):
    return run([sys.executable, "-m", "zinc_rt", *ASK], cwd=tiny_model.parent)


@pytest.fixture
def system(bare_system, tiny_model):  # noqa: F811
    bare_system.put(tiny_model)
    return bare_system


def test_tarball(packages, system, answer):
    (tarball,) = packages.glob("zinc-rt-*.tar.gz")
    system.put(tarball)
    system.shell("tar xzf zinc-rt-*.tar.gz && mv zinc-rt-*/ unpacked")
    assert system.run("unpacked/bin/zinc-rt", *ASK) == answer
    # The libraries beside it were what it ran with, and their notices came along.
    libraries = system.shell("ls unpacked/lib/zinc-rt unpacked/share/doc/zinc-rt/libraries")
    assert "libfmt.so" in libraries and "libfmt9.copyright" in libraries
    assert "unpacked/bin/../lib/zinc-rt/libspdlog" in system.shell("ldd unpacked/bin/zinc-rt")


def test_wheel(system, answer, tmp_path):
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    other = system.run("python3", "-c", "import sys; print('cp%d%d' % sys.version_info[:2])").strip()
    if other != tag:
        pytest.skip(f"this Python makes a wheel for {tag}, the system has {other}")
    run(["bash", ROOT / "scripts" / "wheel.sh", sys.executable])
    (wheel,) = (ROOT / "build" / "wheels").glob(f"zinc_rt-*-{tag}-manylinux_*.whl")
    run([sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", tmp_path, "numpy"])
    system.put(wheel, *tmp_path.iterdir())
    system.shell("python3 -m venv python && python/bin/pip install -q --no-index --find-links . zinc_rt")
    assert system.run("python/bin/zinc-rt", *ASK) == answer
    assert system.run("python/bin/python", "-m", "zinc_rt", *ASK) == answer
    generate = (
        "import zinc_rt; print(zinc_rt.Engine('tiny.gguf').generate('the thin', max_tokens=8, ignore_eos=True).text)"
    )
    assert system.run("python/bin/python", "-c", generate).strip() in answer


def test_deb(packages, system, answer):
    (deb,) = packages.glob("zinc-rt_*.deb")
    system.put(deb)
    before = system.shell("ls /etc/systemd/system/multi-user.target.wants")
    system.shell("apt-get update -qq && apt-get install -y -qq --no-install-recommends ./zinc-rt_*.deb")
    assert system.run("zinc-rt", *ASK) == answer
    assert "SS" in system.shell("zcat /usr/share/man/man1/zinc-rt.1.gz")
    completions = "/usr/share/bash-completion/completions/zinc-rt"
    complete = f"source {completions}; COMP_WORDS=(zinc-rt ser) COMP_CWORD=1; _zinc_rt; echo ${{COMPREPLY[@]}}"
    assert system.run("bash", "-c", complete) == "serve\n"
    # The service is there and off.
    assert "DynamicUser=yes" in system.shell("cat /usr/lib/systemd/system/zinc-rt.service")
    assert system.shell("ls /etc/systemd/system/multi-user.target.wants") == before
    system.shell("dpkg --purge zinc-rt && ! command -v zinc-rt")


def test_the_service_is_hardened():
    need("systemd-analyze")
    unit = ROOT / "cmake" / "package" / "zinc-rt.service"
    run(["systemd-analyze", "security", "--offline=true", "--threshold=25", unit])  # 2.5 of 10


@pytest.fixture
def buildah(bare_system):  # noqa: F811
    """A function that runs buildah, which has the bare system as the image "base" and nothing else."""
    need("buildah")
    with tempfile.TemporaryDirectory() as folder:
        options = ["--storage-driver", "vfs", "--root", f"{folder}/root", "--runroot", f"{folder}/run"]

        def call(command, *arguments):
            return run(["buildah", *options, command, *arguments])

        container = call("from", "scratch").strip()
        call("copy", "-q", container, bare_system.root, "/")
        call("commit", "-q", "--rm", container, "base")
        yield call


def test_image(packages, buildah, tiny_model, answer):
    """The last stage of the Dockerfile, with the .deb that is there in place of the stages that build it."""
    package = packages / "image"
    package.mkdir()
    (deb,) = packages.glob("zinc-rt_*.deb")
    (package / deb.name).hardlink_to(deb)
    arguments = ["--build-arg", "BASE=base", "--build-arg", "BUILD_BASE=base", "--build-context", f"package={package}"]
    buildah("bud", "--isolation", "chroot", "--format", "docker", *arguments, "-t", "zinc-rt", ROOT)

    config = json.loads(buildah("inspect", "zinc-rt"))["Docker"]["config"]
    assert config["User"] == "10001:10001"
    assert set(config["ExposedPorts"]) == {"8080/tcp"}
    assert set(config["Volumes"]) == {"/models", "/var/lib/zinc_rt"}
    assert config["Healthcheck"]["Test"][-1] == "http://127.0.0.1:8080/readyz"

    container = buildah("from", "zinc-rt").strip()
    buildah("copy", "-q", container, tiny_model, "/models/tiny.gguf")
    # The image's own command and health check, on a port that the kernel picks for a test.
    script = """
      "$@" /models/tiny.gguf --port 0 --allow-anonymous > log & server=$!
      trap 'kill $server; wait $server' EXIT
      until grep -q 'http://' log; do sleep 0.1; kill -0 $server; done
      curl -fsS "$(sed -nE 's#.*http://0.0.0.0:([0-9]+).*#http://127.0.0.1:\\1#p' log | head -n 1)/readyz"
      id -u; test -s state.db"""
    shown = buildah(
        "run", "--isolation", "chroot", container, "--", "bash", "-ec", script, "bash", *config["Entrypoint"]
    )
    assert '"ok"' in shown and "10001" in shown
    assert (
        buildah("run", "--isolation", "chroot", container, "--", "sh", "-c", f"cd /models; zinc-rt {as_words(ASK)}")
        == answer
    )


def as_words(arguments):
    return " ".join(f"'{argument}'" for argument in arguments)
