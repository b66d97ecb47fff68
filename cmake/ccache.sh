#!/bin/sh
# ccache.sh CCACHE COMPILER ARGUMENT...: what the build tools call. All build trees of a checkout share objects, pip's too, and
# checkouts in other places do where CCACHE_DIR points at one cache. In a checkout that cannot be written the cache is the user's.
root=${0%/cmake/ccache.sh}
if [ -z "${CCACHE_DIR:-}" ] && mkdir -p "$root/.cache/ccache" 2>/dev/null && [ -w "$root/.cache/ccache" ]; then
  export CCACHE_DIR="$root/.cache/ccache"
fi
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
case $2 in
  */cmake/zig/c++)
    # A script, of which ccache would look at the time alone. It is itself and the version of the compiler that it calls.
    export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:$(cat "$2") $("$2" zig-version)"
    ;;
esac
exec "$@"
