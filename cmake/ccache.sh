#!/bin/sh
# ccache.sh CCACHE COMPILER ARGUMENT...: what the build tools call. All build trees of a checkout share objects, pip's too, and
# checkouts in other places do where CCACHE_DIR points at one cache.
root=${0%/cmake/ccache.sh}
export CCACHE_DIR="${CCACHE_DIR:-$root/.cache/ccache}" CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
exec "$@"
