#!/usr/bin/env bash
# Runs the product and its checks from a checkout, inside an environment that it keeps up to date.
#
# The environment is .venv beside this file. It belongs to this script, which makes it anew when the
# checkout has moved, its Python has gone or an installation was cut short. In it stand the lock,
# hash by hash, and this checkout as an editable install; a stamp, written last, says for which lock
# that is true.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: ./cli.sh memory [ARGUMENT...]   run the product; `./cli.sh memory --help` lists its commands
       ./cli.sh test [ARGUMENT...]     run every check and test, or only pytest with the arguments
       ./cli.sh lint                   run the checks alone (also called `check`)
       ./cli.sh nightly                break things at random, for hours (benchmarks/chaos)

The first call makes .venv and installs the locked requirements; PYTHON names the interpreter.
EOT
}

say() { printf 'cli.sh: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# Prints the folder of the file $1 with every symbolic link followed.
folder_of() {
  local file=$1 target
  while [ -L "$file" ]; do
    target=$(readlink "$file")
    case $target in
      /*) file=$target ;;
      *) file=$(dirname "$file")/$target ;;
    esac
  done
  CDPATH='' cd -P "$(dirname "$file")" && pwd
}

root=$(folder_of "${BASH_SOURCE[0]}")
venv=$root/.venv

# Prints the real path of the interpreter $1 if its version suits. Real, because a link such as
# python3 may point to another minor version one day, and would take the environment with it.
suitable_python() {
  "$1" -c 'import os, sys
if not (3, 11) <= sys.version_info < (3, 14):
    sys.exit(1)
print(os.path.realpath(sys.executable))' 2>/dev/null
}

find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3; do
    if suitable_python "$candidate"; then
      return
    elif [ -n "${PYTHON:-}" ]; then
      die "PYTHON=$PYTHON is not a Python 3.11, 3.12 or 3.13"
    fi
  done
  die "needs Python 3.11, 3.12 or 3.13: install one, or name it with PYTHON=/path/to/python"
}

# Makes the environment with the interpreter $1 unless there is one that can be added to.
make_venv() {
  local python=$1
  if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/.checkout" 2>/dev/null)" = "$root" ] &&
    [ ! -e "$venv/.installing" ]; then
    return
  fi
  say "making $venv with $("$python" --version)"
  rm -rf "$venv"
  "$python" -m venv --without-pip "$venv" >&2 ||
    die "$python cannot make a virtual environment (on Debian and Ubuntu: install python3-venv)"
  printf '%s\n' "$root" >"$venv/.checkout"
}

# Prints the lock of a level: what the product needs, or that and what the tests need.
lock_of() {
  case $1 in
    runtime) printf '%s\n' "$root/constraints.txt" ;;
    dev) printf '%s\n' "$root/constraints-dev.txt" ;;
  esac
}

# Prints all that an installation of level $1 depends on.
stamp_of() {
  printf '%s\n' "$root"
  cat "$(lock_of "$1")" "$root/pyproject.toml"
}

is_installed() { [ -x "$venv/bin/python" ] && stamp_of "$1" | cmp -s - "$venv/.installed-$1"; }

# The dev lock holds all of the runtime lock, in the same versions.
is_ready() { is_installed dev || { [ "$1" = runtime ] && is_installed runtime; }; }

pip_install() {
  local pip quiet=--quiet
  if [ -t 2 ]; then
    quiet=
  fi
  if command -v uv >/dev/null; then
    pip=(uv pip install --compile-bytecode --python "$venv/bin/python")
  else
    "$venv/bin/python" -c 'import pip' 2>/dev/null ||
      "$venv/bin/python" -m ensurepip >/dev/null ||
      die "this Python comes without pip (on Debian and Ubuntu: install python3-venv)"
    pip=("$venv/bin/python" -m pip install --disable-pip-version-check --no-input)
  fi
  "${pip[@]}" $quiet --no-deps "$@" >&2
}

# Brings the environment to level $1, with the interpreter $2 if it has to be made.
install_level() {
  make_venv "$2"
  rm -f "$venv"/.installed-*
  stamp_of "$1" >"$venv/.installing"
  say "installing the requirements locked in $(basename "$(lock_of "$1")"); this takes a minute"
  pip_install --require-hashes --requirement "$(lock_of "$1")"
  pip_install --no-build-isolation --editable "$root"
  # pip compiles what it copies; without this, each call compiles ours where PYTHONDONTWRITEBYTECODE
  # is set. A file with an error in it is no reason to fail here.
  "$venv/bin/python" -m compileall -qq "$root/actors" "$root/memory" || true
  mv "$venv/.installing" "$venv/.installed-$1"
}

# Locks the open file 9 until it is closed. Not with the command flock, which macOS lacks.
take_turn() {
  "$1" -c 'import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("cli.sh: waiting for another installation", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)'
}

# Installs level $1 if it is not ready; of two calls at the same time the second one waits.
ensure() {
  local python
  if is_ready "$1"; then
    return
  fi
  python=$(find_python)
  (
    take_turn "$python"
    if ! is_ready "$1"; then
      install_level "$1" "$python"
    fi
  ) 9<"$root"
}

lint() {
  "$venv/bin/ruff" format --check
  "$venv/bin/ruff" check
  "$venv/bin/mypy"
  "$venv/bin/lint-imports"
  "$venv/bin/codespell"
  "$venv/bin/validate-pyproject" pyproject.toml
}

run_pytest() { "$venv/bin/python" -m pytest "$@"; }

# Each part is a run of its own, so that a part without a single test fails (pytest's status 5). The
# unit tests run beside those that mostly wait; what they print comes when they are done.
test_all() {
  local part
  lint
  unit_log=$(mktemp)
  run_pytest -p tests.no_ray tests/unit >"$unit_log" 2>&1 &
  unit=$!
  trap 'kill "$unit" 2>/dev/null || true; rm -f "$unit_log"' EXIT
  for part in inline contract recall fuzz; do
    run_pytest "tests/$part"
  done
  run_pytest tests/test_*.py
  wait "$unit" || die "the unit tests failed:
$(cat "$unit_log")"
  cat "$unit_log"
  run_pytest tests/cluster
}

# Without atheris, which has wheels for Linux on x86-64 only, the inputs are random bytes.
install_fuzzer() {
  if ! "$venv/bin/python" -c 'import atheris' 2>/dev/null; then
    pip_install --require-hashes --only-binary :all: --requirement constraints-fuzz.txt ||
      say "atheris cannot be installed here; random bytes must do"
  fi
}

# Runs all of them even if one finds something, and fails if one did.
nightly() {
  local failed=0 name
  install_fuzzer
  chaos fuzzing --seconds 60 || failed=1
  for name in prompts saving syscalls reading owners stopping large_index rewriting watching \
    overflow flood actor_kills host; do
    chaos "$name" || failed=1
  done
  if [ "$(id -u)" = 0 ]; then # it mounts a file system
    chaos full_disk || failed=1
  fi
  return "$failed"
}

chaos() {
  local name=$1
  shift
  say "benchmarks/chaos/$name.py $*"
  PYTHONPATH=$root "$venv/bin/python" "benchmarks/chaos/$name.py" "$@"
}

export MEMORY_HOME=${MEMORY_HOME:-$root}
# Keeps every port of Ray on the loopback interface; Ray reads it when it is imported.
export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=${RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER:-0}

command=${1:-}
if [ $# -gt 0 ]; then
  shift
fi
case $command in
  memory)
    ensure runtime
    exec "$venv/bin/memory" "$@"
    ;;
  test)
    ensure dev
    cd "$root"
    if [ $# -gt 0 ]; then
      run_pytest "$@"
    else
      test_all
    fi
    ;;
  lint | check)
    ensure dev
    cd "$root"
    lint
    ;;
  nightly)
    ensure dev
    cd "$root"
    nightly
    ;;
  -h | --help | help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
