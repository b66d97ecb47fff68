"""scripts/lib.sh: which packages it takes where the system's lists have some of the names only."""

import pathlib
import subprocess

import pytest

LIB = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "lib.sh"
# What apt-cache says of a name whose candidate is in $LISTS ("name version", a line each). As on Debian 13, `show` is
# content with a name that other packages only mention.
APT_CACHE = r"""#!/bin/sh
[ "$1" = show ] && exit 0
version=$(sed -n "s/^$2 //p" "$LISTS")
printf '%s:\n  Installed: (none)\n  Candidate: %s\n  Version table:\n' "$2" "${version:-(none)}"
"""
DPKG_QUERY = r"""#!/bin/sh
for name; do :; done
grep -q "^$name " "$INSTALLED" || { echo "dpkg-query: no packages found matching $name" >&2; exit 1; }
printf 'installed %s' "$(sed -n "s/^$name //p" "$INSTALLED")"
"""
DPKG = '#!/bin/sh\n[ "$(printf "%s\\n%s\\n" "$2" "$4" | sort -V | head -n 1)" = "$4" ]\n'
BOOST = "libboost1.81-dev|libboost1.83-dev|libboost-dev>=1.81"


@pytest.fixture
def lib(tmp_path):
    """A function that runs a line after lib.sh, in a system with these lists and installed packages."""
    for name, text in (("apt-cache", APT_CACHE), ("dpkg-query", DPKG_QUERY), ("dpkg", DPKG)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(line, lists="", installed=""):
        (tmp_path / "lists").write_text(lists)
        (tmp_path / "installed").write_text(installed)
        environment = {
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "LISTS": str(tmp_path / "lists"),
            "INSTALLED": str(tmp_path / "installed"),
        }
        return subprocess.run(
            ["bash", "-euc", f'source "{LIB}"; {line}'], env=environment, capture_output=True, text=True, check=True
        ).stdout

    return run


@pytest.mark.parametrize(
    ("system", "lists", "wanted"),
    [
        ("Debian 12", "libboost-dev 1.74.0.3\nlibboost1.81-dev 1.81.0-5\n", "libboost1.81-dev"),
        ("Debian 13", "libboost-dev 1.83.0.2+b2\nlibboost1.83-dev 1.83.0-4.2\n", "libboost1.83-dev"),
        ("a later one", "libboost-dev 1.90.0.1\nlibboost1.90-dev 1.90.0-1\n", "libboost-dev"),
        ("one that has none", "libboost-dev 1.74.0.3\n", "libboost1.81-dev"),  # apt-get then names it
    ],
)
def test_the_name_that_the_lists_have_a_version_of(lib, system, lists, wanted):
    assert lib(f"first_known '{BOOST}' cmake", lists) == f"{wanted} cmake", system


@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        ("libboost-dev 1.74.0.3\n", f"{BOOST}\n"),  # too old, and not enough
        ("libboost-dev 1.83.0.2\n", ""),
        ("libboost1.81-dev 1.81.0-5\n", ""),
        ("", f"{BOOST}\n"),
    ],
)
def test_an_installed_package_that_is_too_old_is_missing(lib, installed, missing):
    assert lib(f"missing_packages '{BOOST}'", installed=installed) == missing


def test_what_is_only_wanted_is_left_out_where_it_cannot_be_had(lib):
    said = lib("may_install() { false; }; want_packages clang-22 lld-22", lists="lld-22 22.1\n")
    assert "without clang-22, which this system does not have" in said
    assert "without lld-22, for there is no sudo" in said


@pytest.mark.parametrize(
    ("makers", "said"),
    [
        ({"renderD128": "0x1002"}, "AMD"),
        ({"renderD128": "0x10de", "renderD129": "0x8086"}, "Intel"),
        ({"renderD128": "0x1af4"}, "another maker (0x1af4)"),
        ({"renderD128": "0x10de"}, "none"),
        ({"card0": "0x1002"}, "none"),  # it shows pictures and computes nothing
        ({}, "none"),
    ],
)
def test_a_gpu_that_no_tier_takes(lib, tmp_path, makers, said):
    for node, maker in makers.items():
        (tmp_path / "drm" / node / "device").mkdir(parents=True)
        (tmp_path / "drm" / node / "device" / "vendor").write_text(maker + "\n")
    assert lib(f"other_gpu '{tmp_path}/drm' || echo none").strip() == said
