#!/usr/bin/env bash
# The first hour of a new user, on systems with nothing installed: see --help.
set -euo pipefail
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  cat <<'HELP'
usage: bash scripts/systems.sh [--tests] [--turn | SYSTEM...]

For each SYSTEM (debian12, debian13, ubuntu24.04; all if none is named) makes a folder with little more than apt, and in it does what
the README says in a clone of the last commit: scripts/demo.sh, with --tests also scripts/test.sh, then scripts/wheel.sh and
scripts/package.sh. A second such folder installs the wheel and the .deb, and both must give the answer that the first system gave.
--turn takes one system, by the number of commits: so a CI tries each of them in turn.
What can be used again (packages, the compiler's results) is kept in ~/.cache/zinc_rt/systems. For root, with debootstrap.
Exit codes: 0 done, 77 a system could not be made here (the last line says why), others: something failed.
HELP
  exit 0
fi
source "$(dirname "$0")/lib.sh"

declare -A SUITES=([debian12]=bookworm [debian13]=trixie [ubuntu24.04]=noble)
ALL=(debian12 debian13 ubuntu24.04)
KEPT=${XDG_CACHE_HOME:-$HOME/.cache}/zinc_rt/systems
UBUNTU_KEYS=/usr/share/keyrings/ubuntu-archive-keyring.gpg
cannot() { echo "left out: $*"; exit 77; }

tests=
systems=()
for word in "$@"; do
  case $word in
    --tests) tests=1 ;;
    --turn) systems=("${ALL[$(($(git rev-list --count HEAD) % ${#ALL[@]}))]}") ;;
    *) [ -n "${SUITES[$word]:-}" ] || die "there is no system $word here; ${ALL[*]} are"
       systems+=("$word") ;;
  esac
done
[ ${#systems[@]} -gt 0 ] || systems=("${ALL[@]}")
[ "$(id -u)" -eq 0 ] || cannot "a system in a folder is made and entered by root"
for tool in debootstrap unshare chroot; do command -v $tool >/dev/null || cannot "$tool is not installed"; done

WORK=$(mktemp -d)
trap 'rm -rf --one-file-system "$WORK"' EXIT

# The keys of Ubuntu's archive: this machine's, else those that Debian 13 has a package of.
ubuntu_keys() {
  [ -f "$UBUNTU_KEYS" ] && { echo "$UBUNTU_KEYS"; return; }
  if [ ! -f "$KEPT/ubuntu-keyring.gpg" ]; then
    bare debian13 "$WORK/keys" >&2 || return 1
    inside "$WORK/keys" debian13 sh -ec 'apt-get update -qq; apt-get install -y -qq --no-install-recommends ubuntu-keyring' >&2 || return 1
    cp "$WORK/keys$UBUNTU_KEYS" "$KEPT/ubuntu-keyring.gpg"
    rm -rf --one-file-system "$WORK/keys"
  fi
  echo "$KEPT/ubuntu-keyring.gpg"
}

# bare SYSTEM FOLDER: what debootstrap makes; a week later it is made anew.
bare() {
  local system=$1 folder=$2 tar=$KEPT/$1/bare.tar options=() last=() further
  mkdir -p "$KEPT/$system"
  if [ -z "$(find "$tar" -mtime -7 2>/dev/null)" ]; then
    rm -rf --one-file-system "$WORK/new"
    if [[ $system == ubuntu* ]]; then
      options=(--components=main,universe "--keyring=$(ubuntu_keys)") || return 1
      # An older debootstrap does not know the release; all releases of Ubuntu are made alike.
      last=("" /usr/share/debootstrap/scripts/gutsy)
    fi
    debootstrap --variant=minbase "${options[@]}" "${SUITES[$system]}" "$WORK/new" "${last[@]}" >"$WORK/debootstrap.log" 2>&1 ||
      { tail -n 3 "$WORK/debootstrap.log" >&2; return 1; }
    if [[ $system == ubuntu* ]]; then  # with what came after the release, as an installed one has it
      further=$(sed -E "s/ ${SUITES[$system]} / ${SUITES[$system]}-updates /p; s/-updates /-security /" "$WORK/new/etc/apt/sources.list")
      echo "$further" >>"$WORK/new/etc/apt/sources.list"
    fi
    tar -C "$WORK/new" -cf "$tar.part" . && mv "$tar.part" "$tar"
    rm -rf --one-file-system "$WORK/new"
  fi
  mkdir -p "$folder"
  tar -C "$folder" -xf "$tar"
  # As this machine reaches its network: names, certificates, and pip's configuration.
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
  mkdir -p "$folder/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$folder/usr/local/share/ca-certificates/" \; 2>/dev/null || true
}

# inside FOLDER SYSTEM COMMAND...: in that system's /root, with nothing of this machine's environment but how pip reaches its index.
inside() {
  local folder=$1 system=$2 variables=() name
  shift 2
  for name in PIP_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || variables+=("$name=${!name}")
  done
  mkdir -p "$KEPT/$system"/{debs/partial,ccache} "$KEPT/pip" "$folder"/root/.cache/{ccache,pip}
  unshare --mount sh -ec '
    folder=$1 kept=$2 pip=$3; shift 3
    mount -t proc proc "$folder/proc"; mount --bind /dev "$folder/dev"; mount --bind /dev/pts "$folder/dev/pts"
    mount --bind "$kept/debs" "$folder/var/cache/apt/archives"
    mount --bind "$kept/ccache" "$folder/root/.cache/ccache"
    mount --bind "$pip" "$folder/root/.cache/pip"
    exec chroot "$folder" "$@"' sh "$folder" "$KEPT/$system" "$KEPT/pip" \
    env -i -C /root HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt CCACHE_DIR=/root/.cache/ccache CCACHE_MAXSIZE=2G CXXFLAGS="${CXXFLAGS:-}" \
    ZRT_CUDA=OFF "${variables[@]}" "$@"
}

ASK="-p 'The capital of France is' -n 8"
try() { # try SYSTEM
  local system=$1 first=$WORK/$1 second=$WORK/$1-second want got begin=$SECONDS
  step() { say "$system: $* ($((SECONDS - begin)) s)"; }
  step "a bare system"
  bare "$system" "$first" || cannot "debootstrap cannot make $system here"
  git clone -q --no-hardlinks . "$first/root/zinc_rt"
  step "scripts/demo.sh"
  inside "$first" "$system" sh -ec 'apt-get update -qq; cd zinc_rt; bash scripts/demo.sh'
  if [ -n "$tests" ]; then
    step "scripts/test.sh"
    inside "$first" "$system" sh -ec 'cd zinc_rt; bash scripts/test.sh'
  fi
  step "scripts/wheel.sh, scripts/package.sh"
  inside "$first" "$system" sh -ec 'cd zinc_rt; bash scripts/wheel.sh; bash scripts/package.sh deb'
  want=$(inside "$first" "$system" sh -ec "cd zinc_rt; build/release/bin/zinc-rt run ${MODEL#"$ROOT"/} $ASK")
  [ -n "$want" ] || die "$system: the demo model gave no answer"

  step "the packages, in a second system"
  bare "$system" "$second"
  cp "$first"/root/zinc_rt/build/wheels/*.whl "$first"/root/zinc_rt/build/release/packages/*.deb "$first/root/zinc_rt/${MODEL#"$ROOT"/}" "$second/root/"
  rm -rf --one-file-system "$first"
  inside "$second" "$system" sh -ec 'apt-get update -qq; apt-get install -y -qq --no-install-recommends ./zinc-rt_*.deb >/dev/null'
  got=$(inside "$second" "$system" sh -ec "zinc-rt run ${MODEL##*/} $ASK")
  [ "$got" = "$want" ] || die "$system: the .deb's program says \"$got\", \"$want\" wanted"
  inside "$second" "$system" sh -ec '
    apt-get install -y -qq --no-install-recommends python3-venv ca-certificates >/dev/null
    python3 -m venv python && python/bin/pip install -q --disable-pip-version-check ./*.whl'
  got=$(inside "$second" "$system" sh -ec "python/bin/zinc-rt run ${MODEL##*/} $ASK")
  [ "$got" = "$want" ] || die "$system: the wheel's program says \"$got\", \"$want\" wanted"
  inside "$second" "$system" python/bin/python -c "import zinc_rt; print(zinc_rt.Engine('${MODEL##*/}').generate('a', max_tokens=2).usage)"
  rm -rf --one-file-system "$second"
  step "done: $want"
}

for system in "${systems[@]}"; do try "$system"; done
