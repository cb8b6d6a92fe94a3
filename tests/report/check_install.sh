#!/bin/sh
# Installs into a folder and runs from there, takes it away again, and looks into the package: check_install.sh BUILD
set -e
build=$1
root=$(cd "$build" && pwd)/install-root
rm -rf "$root"
make --no-print-directory install DESTDIR="$root" PREFIX=/opt/zc >/dev/null
zcshim=$root/opt/zc/bin/zcshim
unset ZCSHIM_LIB
"$zcshim" --version
[ "$("$zcshim" run --report=off sh -c 'echo $LD_PRELOAD')" = "$root/opt/zc/lib/zcshim/libzcshim.so" ]
"$zcshim" run --report=off /bin/true
"$zcshim" options >/dev/null
for file in share/man/man1/zcshim.1 share/man/man7/libzcshim.7 share/bash-completion/completions/zcshim \
	share/zsh/site-functions/_zcshim share/doc/zcshim/report-schema.json; do
	[ -s "$root/opt/zc/$file" ] || { echo "missing: $file"; exit 1; }
done
bash -n "$root/opt/zc/share/bash-completion/completions/zcshim"
! command -v zsh >/dev/null || zsh -n "$root/opt/zc/share/zsh/site-functions/_zcshim"
if command -v man >/dev/null; then
	for page in 1/zcshim.1 7/libzcshim.7; do
		warnings=$(man --warnings -E UTF-8 -l "$root/opt/zc/share/man/man$page" 2>&1 >/dev/null)
		[ -z "$warnings" ] || { echo "$warnings"; exit 1; }
	done
fi
make --no-print-directory uninstall DESTDIR="$root" PREFIX=/opt/zc >/dev/null
left=$(find "$root" -type f -o -type l)
[ -z "$left" ] || { echo "uninstall left: $left"; exit 1; }
rm -rf "$root"
if command -v dpkg-deb >/dev/null; then
	make --no-print-directory deb >/dev/null
	package=$(ls "$build"/zcshim_*.deb)
	dpkg-deb --contents "$package" | grep ' ./usr/lib/zcshim/libzcshim.so$' >/dev/null
	dpkg-deb --extract "$package" "$root"
	"$root/usr/bin/zcshim" run --report=off /bin/true
	rm -rf "$root"
	echo "package: $package"
fi
echo "install, uninstall and package work"
