#!/usr/bin/env bash
# Prints the Pythons of this machine that icebergds can use, the oldest first: one of each minor
# version, from the path or from pyenv.
set -euo pipefail

usable="import ensurepip, sys, venv; sys.exit(sys.version_info.releaselevel != 'final')"

for minor in $(seq 11 30); do
    name=python3.$minor
    for python in "$(command -v "$name" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"$name"; do
        # Shims of pyenv may be on the path without a Python behind them.
        if [ -x "$python" ] && "$python" -c "$usable" 2>/dev/null; then
            echo "$python"
            break
        fi
    done
done
