#!/bin/sh
# Installs what building and testing need and this machine lacks (Debian, Ubuntu), or prints the one line to run.
missing=
need() { # need PACKAGE TEST...
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
has_header() { echo "#include <$1>" | ${CC:-gcc} -E - ; }
need gcc sh -c 'command -v gcc'
need g++ sh -c 'command -v g++'
need python3 sh -c 'command -v python3'
need uthash-dev has_header uthash.h
need libcriterion-dev has_header criterion/criterion.h
need libdw-dev has_header elfutils/libdwfl.h
[ -z "$ZCSHIM_DEPS_BUILD_ONLY" ] && need gcc-aarch64-linux-gnu sh -c 'command -v aarch64-linux-gnu-gcc'
[ -z "$missing" ] && exit 0
install="apt-get install -y$missing"
if [ "$(id -u)" = 0 ]; then sudo=; elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo=sudo; else
	echo "missing packages; run: sudo $install" >&2
	exit 1
fi
echo "installing:$missing"
$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $sudo $install -qq >/dev/null
