#!/usr/bin/env bash
# Makes the addons that the package brings along, for glibc 2.28 and later:
#   prebuilds/linux-x64/mooncake_kv.node  prebuilds/linux-arm64/mooncake_kv.node
# Usage: scripts/prebuild.sh [x64] [arm64]      (no argument: both; npm run build:prebuilds)
# Needs CMake, ninja or make, Python 3 with venv, and node_modules. zig, the cross compiler, comes from PyPI into
# build/zig. Everything is kept under build/, so that a second run makes only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- x64 arm64

ZIG=0.17.1
GLIBC=2.28

# A machine that lacks something ends with 3, a fault in our sources with anything else.
lacking() { echo "scripts/prebuild.sh: $1" >&2; exit 3; }
command -v cmake >/dev/null || lacking "cmake is not on the PATH"
command -v ninja >/dev/null || command -v make >/dev/null || lacking "neither ninja nor make is on the PATH"

mkdir -p build
exec 9>build/prebuild.lock
flock 9 # two runs at a time would build into the same folders

zig=$PWD/build/zig/zig
if [ "$("$zig" version 2>/dev/null)" != "$ZIG" ]; then
  rm -rf build/zig
  python3 -m venv build/zig || lacking "python3 with venv is needed to install zig"
  build/zig/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: "ziglang==$ZIG" ||
    lacking "ziglang $ZIG can't be installed from PyPI"
  ln -s "$(build/zig/bin/python -c 'import ziglang, os; print(os.path.dirname(ziglang.__file__))')/zig" "$zig"
fi
# zig builds its C++ library for each target, once.
export ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig-cache ZIG_LOCAL_CACHE_DIR=$PWD/build/zig-cache

headers=$(node -p 'require("node-api-headers").include_dir + ";" + require("node:path").resolve(require("node-addon-api").include_dir)')
generator="Unix Makefiles"
! command -v ninja >/dev/null || generator=Ninja

for arch in "$@"; do
  case $arch in
    x64) cpu=x86_64 ;;
    arm64) cpu=aarch64 ;;
    *) echo "unknown architecture $arch; known are x64 and arm64" >&2; exit 2 ;;
  esac
  folder=build/prebuild-$arch
  # What the folder was configured for; a different compiler or place of headers starts anew.
  setup="zig $ZIG, glibc $GLIBC, $generator, $headers, $PWD"
  [ "$(cat "$folder/setup" 2>/dev/null)" = "$setup" ] || rm -rf "$folder"
  mkdir -p "$folder"
  [ -f "$folder/build.ninja" ] || [ -f "$folder/Makefile" ] || cmake -G "$generator" -S . -B "$folder" \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/native/cmake/zig.cmake" -DMOONCAKE_KV_ZIG="$zig" -DMOONCAKE_KV_ZIG_CPU=$cpu \
    -DMOONCAKE_KV_ZIG_GLIBC=$GLIBC -DCMAKE_BUILD_TYPE=Release -DCMAKE_JS_INC="$headers" \
    -DMOONCAKE_KV_PRECOMPILED_HEADERS=ON
  printf %s "$setup" >"$folder/setup"
  cmake --build "$folder" --target mooncake_kv --parallel "${MOONCAKE_KV_JOBS:-2}"
  target=prebuilds/linux-$arch/mooncake_kv.node
  mkdir -p "$(dirname "$target")"
  # Renamed into place: a process that has the old file loaded keeps it.
  cp "$folder/native/bindings/mooncake_kv.node" "$target.$$"
  mv "$target.$$" "$target"
  echo "$target: $(stat -c %s "$target") bytes"
done
