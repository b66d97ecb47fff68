#!/usr/bin/env bash
# A .deb and a tarball of the program: see --help.
set -euo pipefail
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  cat <<'HELP'
usage: bash scripts/package.sh [deb] [tarball]

Builds zinc-rt (build/release) and makes, of both or of the one that is named, in build/release/packages:
  zinc-rt_VERSION_ARCH.deb                 for the release of Debian or Ubuntu that this machine has: the program, its manual page,
                                           completions of bash, zsh and fish, and the service zinc-rt, which is off at first
  zinc-rt-VERSION-linux-PROCESSOR.tar.gz   the same, with its libraries beside it, for any Linux with the glibc and libstdc++ that are said at the end

In the environment: ZRT_CUDA=ON or OFF, with or without the GPU tier, else it is built where nvcc is; ZRT_CUDA_ARCHITECTURES="86 89"
adds machine code for these to that for 9.0a and the PTX that all later than 8.0 compile at the first start.
HELP
  exit 0
fi
source "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- deb tarball
generators=()
for kind in "$@"; do
  case $kind in
    deb) generators+=(DEB) ;;
    tarball) generators+=(TGZ) ;;
    *) die "no package is called \"$kind\"; deb and tarball are (see --help)" ;;
  esac
done

need_packages "${BUILD_PACKAGES[@]}" "${PACKAGE_PACKAGES[@]}"
cuda_for_others
build_program
rm -rf build/release/packages
for generator in "${generators[@]}"; do
  cpack --config build/release/CPackConfig.cmake -G "$generator" >build/package.log 2>&1 || { cat build/package.log >&2; die "cpack failed"; }
done
say "packages"
ls -sh1 build/release/packages/zinc-rt*
say "their program: $(build/release/bin/zinc-rt --version | head -n 1); they want $(needed_glibc build/release/bin/zinc-rt $(ldd build/release/bin/zinc-rt | awk '/=> / && !/lib(c|m|stdc\+\+|gcc_s)\./ { print $3 }'))"
