#!/usr/bin/env bash
# All fast tests, C++ and Python: see --help.
set -euo pipefail
SLOW=0
case "${1:-}" in
  --help | -h)
    cat <<'HELP'
usage: bash scripts/test.sh [--slow]

Installs what is missing, builds the C++ tests (build/release) and the Python package (.venv), and runs the fast tests; --slow adds
the slow ones. Tests that need the demo model or the reference fixtures are skipped by name where these are absent.
HELP
    exit 0
    ;;
  --slow) SLOW=1 ;;
  '') ;;
  *) echo "usage: bash scripts/test.sh [--slow]" >&2; exit 2 ;;
esac
source "$(dirname "$0")/lib.sh"

need_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
need_model || say "the demo model could not be fetched; its tests will be skipped by name"
build release all -- -DZRT_TESTS=ON
need_package

say "C++ tests"
labels=(-L fast)
[ "$SLOW" = 1 ] && labels=()
ctest --test-dir build/release "${labels[@]}" -j 2 --output-on-failure --progress | tail -n 30
say "Python tests"
marks=(-m "not slow")
[ "$SLOW" = 1 ] && marks=()
"$VENV/bin/python" -m pytest -q "${marks[@]}"
