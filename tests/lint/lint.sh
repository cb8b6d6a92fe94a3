#!/bin/sh
# lint.sh BUILD: format, static analysis, what the library needs and shows, the README's table of settings.
# 77 if all is right but a tool was missing (its name is printed).
build=$1
failed=0 missing=
has() { command -v "$1" >/dev/null 2>&1 || { missing="$missing $1" && false; }; }
fail() { echo "FAILED $*" && failed=1; }

# Other releases of clang-format lay some lines out differently.
if has clang-format && clang-format --version | grep -q 'version 14\.'; then
	find shim policy cli tests/sim tests/unit -name '*.[ch]' | xargs clang-format --dry-run -Werror || fail "format: clang-format -i the files above"
else
	case " $missing " in *" clang-format "*) ;; *) missing="$missing clang-format-14" ;; esac
fi

if has cppcheck; then
	cppcheck -j2 --quiet --std=c11 --enable=warning,portability --library=posix --library=gnu -I. -D__linux__ -D_GNU_SOURCE \
		-D__x86_64__ --max-configs=1 --suppressions-list=tests/lint/cppcheck.txt --error-exitcode=1 shim policy cli || fail cppcheck
fi

if has readelf && has nm; then
	library=$build/libzcshim.so
	needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libc\.so\.6|ld-linux-.*)$')
	[ -z "$needed" ] || fail "$library needs" $needed
	allowed=$(sed -n '/global:/,/local:/{/global:/d;/local:/d;p}' shim/libzcshim.map | tr ';' '\n' | tr -d ' \t' | grep . | sed 's/\*/.*/' | paste -sd'|')
	shown=$(nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -Evx "$allowed")
	[ -z "$shown" ] || fail "$library shows names that shim/libzcshim.map does not list:" $shown
fi

python3 tests/readme.py || fail "README.md"
[ $failed -eq 0 ] || exit 1
[ -z "$missing" ] || { echo "skipped: not here:$missing; the rest is right"; exit 77; }
echo "format, static analysis, needs, names and the README are right"
